-- What jobq_http.page_audit() promises: who did what, newest first, in pages.
begin;
select plan(5);

select jobq_http.act_for('ada');
select jobq.pause_queue('q' || n, 'reason ' || n) from generate_series(1, 3) as n;

select is((select item ->> 'reason' from jobq_http.page_audit(max_rows => 1)), 'reason 3',
    'the newest comes first');
select is((select item ->> 'acting_for' from jobq_http.page_audit(max_rows => 1)), 'ada',
    'with who it was done for');
select is(
    (
        select n.item ->> 'reason'
        from jobq_http.page_audit(max_rows => 1) as p
        cross join lateral jobq_http.page_audit(before => p.cursor, max_rows => 1) as n
    ), 'reason 2', 'the next page begins after the cursor'
);
select is((select count(*) from jobq_http.page_audit(subject => 'q1')), 1::bigint,
    'a subject chooses');
select throws_ok('select jobq_http.page_audit(max_rows => 0)', '22023', null,
    'a page of none is refused');

select * from finish();
rollback;
