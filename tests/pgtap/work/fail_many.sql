-- What jobq.fail_many() promises.
begin;
select plan(20);

create temporary table batch (n integer, job_id uuid);
insert into batch
select n, jobq.enqueue('work', max_attempts => case n when 2 then 1 else 5 end)
from generate_series(1, 7) as n;
select from jobq.claim('{default}', 'w', 6);
create function pg_temp.failure(n integer, members jsonb)
returns jsonb
language sql
as $$
select jsonb_build_object('job_id', b.job_id, 'attempt', 1) || failure.members
from batch as b
where b.n = failure.n
$$;
select jobq.cancel(b.job_id) from batch as b where b.n = 4;

create temporary table failed as
select * from jobq.fail_many(jsonb_build_array(
    pg_temp.failure(3,
        '{"error": "permanent", "error_code": "GONE", "retryable": false}'),
    pg_temp.failure(1,
        '{"error": "transient", "error_code": "BUSY", "retry_in": "1 h"}'),
    pg_temp.failure(2, '{"error": "last"}'),
    pg_temp.failure(4, '{"error": "unwanted"}'),
    pg_temp.failure(5, '{"error": "stale", "attempt": 9}'),
    pg_temp.failure(7, '{"error": "waiting"}')
)) with ordinality as f (job_id, attempt, state, n);
select results_eq(
    'select b.n, f.attempt, f.state from failed as f join batch as b using (job_id)
    order by f.n',
    $$
    values (3, 1, 'dead'), (1, 1, 'retrying'), (2, 1, 'dead'), (4, 1, 'cancelled'),
    (5, 9, null), (7, 1, null)
    $$,
    'each attempt is told its job''s new state, in order, and null where it is lost'
);
select results_eq(
    'select b.n, j.state, j.last_error, j.last_error_code from batch as b
    join jobq.job as j using (job_id) order by b.n',
    $$
    values (1, 'retrying' collate "C", 'transient', 'BUSY'), (2, 'dead', 'last', 'ERROR'),
    (3, 'dead', 'permanent', 'GONE'), (4, 'cancelled', 'unwanted', 'ERROR'),
    (5, 'running', null, null), (6, 'running', null, null), (7, 'queued', null, null)
    $$,
    'a lost attempt holds up no other and changes nothing'
);
select ok(
    j.run_at between now() + interval '1 h' and clock_timestamp() + interval '1 h',
    'each failure has its own delay'
)
from jobq.job as j
join batch as b using (job_id)
where b.n = 1;
select results_eq(
    $$
    select f.attempt, f.state
    from jobq.fail_many(jsonb_build_array(
        pg_temp.failure(5, '{"attempt": 0}'), pg_temp.failure(5, '{}')
    )) as f
    $$,
    $$ values (0, null), (1, 'retrying') $$,
    'of two attempts of one job only the one that holds it counts'
);
select is_empty('select * from jobq.fail_many(''[]'')', 'a batch may be empty');
select results_eq(
    'select f.state from jobq.fail_many(''[{}]'') as f', 'values (null::text)',
    'a failure of no job is lost'
);
select is(
    refusal(format('select jobq.fail_many(%L)', a.failures)), a.refusal,
    format('fail_many(%s): %s', left(a.failures, 60), a.refusal)
)
from (
    values
    (null, '22004 NULL_ARGUMENT'),
    ('null', '22023 INVALID_ARGUMENT'),
    ('{}', '22023 INVALID_ARGUMENT'),
    ('[1]', '22023 INVALID_ARGUMENT'),
    ('[{"retriable": false}]', '22023 INVALID_ARGUMENT'),
    ('[{"job_id": "x"}]', '22023 INVALID_ARGUMENT'),
    ('[{"retryable": "perhaps"}]', '22023 INVALID_ARGUMENT'),
    ('[{"attempt": 1e30}]', '22023 INVALID_ARGUMENT'),
    ('[{"retry_in": "soon"}]', '22023 INVALID_ARGUMENT'),
    (jsonb_build_array(pg_temp.failure(6, '{"retry_in": "-1 s"}'))::text,
        '22023 INVALID_ARGUMENT'),
    (jsonb_build_array(pg_temp.failure(6, '{}'),
        '{"retry_in": "366 days"}'::jsonb)::text,
        '22023 INVALID_ARGUMENT'),
    (jsonb_build_array(pg_temp.failure(6, '{"details": 503}'))::text,
        '22023 INVALID_ARGUMENT')
) as a (failures, refusal);
create function pg_temp.detail(failures jsonb)
returns text
language plpgsql
as $$
declare
    _detail text;
begin
    perform from jobq.fail_many(failures);
    return 'none';
exception
    when invalid_parameter_value then
        get stacked diagnostics _detail = pg_exception_detail;
        return _detail;
end
$$;
select matches(
    pg_temp.detail('[{"error": "x"}, {"attempt": 1, "job_id": "x"}]'), '^failure 2: job_id: .*"x"',
    'the failure and the member are told'
);
select is(
    (select j.state::text from jobq.job as j join batch as b using (job_id)
    where b.n = 6),
    'running', 'a refused batch fails nothing'
);

select * from finish();
rollback;
