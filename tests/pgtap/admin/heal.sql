-- Rows that bypassed the triggers are found by health(), and mended where it is clear how.
-- Needs more than the core.
begin;
select plan(9);

select hold_off_vacuum();
select jobq.enqueue('work') as unleased, jobq.enqueue('work', max_attempts => 1) as last,
    jobq.enqueue('work') as finished, jobq.enqueue('work') as illegal,
    jobq.enqueue('work') as unknown, jobq.enqueue('work') as unseen,
    jobq.enqueue('work') as sound \gset
select from jobq.claim('{default}', 'w', 3);
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'rows'), 'sound rows are no finding'
);
set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = null where job_id in (:'unleased', :'last');
update jobq_private.job
set state = 'succeeded', previous_state = 'running', lease_expires_at = null
where job_id = :'finished';
update jobq_private.job set state = 'succeeded', previous_state = 'queued' where job_id = :'illegal';
update jobq_private.job set state = 'nonsense' where job_id = :'unknown';
update jobq_private.job set due_at = null where job_id = :'unseen';
set local session_replication_role = origin;
select matches(
    (select h.finding from jobq.health() as h where h.subject = 'rows' and not h.is_ok),
    '^6 live jobs bypassed the triggers, as job_id ', 'health() finds what bypassed the triggers'
);
create temporary table done as select * from jobq.maintain();
select is((select d.affected from done as d where d.task = 'healed'), 4::bigint, 'maintain() mends');
select is(
    (jobq.get_job(:'unleased')).state::text, 'retrying', 'a job that runs without a lease is tried again'
);
select is((jobq.get_job(:'last')).state::text, 'dead', 'or dead when no attempt is left');
select results_eq(
    format('select state, finished_at is not null from jobq.get_job(%L)', :'finished'),
    $$ values ('succeeded' collate "C", true) $$, 'a job that has ended leaves the live ones'
);
select bag_eq(
    $$
    select j.job_id from jobq_private.job as j
    where j.state not in ('queued', 'running', 'retrying', 'blocked')
    $$,
    format('values (%L::uuid), (%L::uuid)', :'illegal', :'unknown'),
    'what no legal change mends is left'
);
select ok(
    (select not h.is_ok from jobq.health() as h where h.subject = 'rows'), 'and still found'
);

select ok(
    :'unseen' in (select c.job_id::text from jobq.claim('{default}', 'w', 9) as c),
    'a waiting job that was due at no time is claimed'
);

select * from finish();
rollback;
