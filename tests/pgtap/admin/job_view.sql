-- jobq.job: every job as one relation, and S4's way to work with it from psql.
-- Needs more than the core.
begin;
select plan(70);

-- As one of the roles; the SQLSTATE and code that refused it, or the number of rows.
create function pg_temp.as_role(role text, statement text)
returns text
language plpgsql
as $$
declare
    _code text;
    _rows bigint;
begin
    perform set_config('role', as_role.role, true);
    execute as_role.statement;
    get diagnostics _rows = row_count;
    perform set_config('role', 'none', true);
    return _rows || ' rows';
exception
    when others then
        get stacked diagnostics _code = constraint_name;
        return sqlstate || ' ' || _code;
end
$$;

-- Insert enqueues
select is(
    pg_temp.as_role('jobq_producer', $$
        insert into jobq.job (kind, payload, queue, run_at, priority, max_attempts,
            timeout,
            idempotency_key, dedup_key, metadata)
        values ('v', '{"n": 1}', 'q', '2999-01-01 00:00+00', 3, 2, '9 s', 'ik', 'dk',
            '{"m": 1}')
    $$),
    '1 rows', 'a producer may insert a job'
);
select results_eq(
    $$
    select payload, queue, run_at::timestamptz, priority::integer, max_attempts, timeout,
        idempotency_key, dedup_key, metadata, state
    from jobq_private.job where kind = 'v'
    $$,
    $$
    values ('{"n": 1}'::jsonb, 'q', timestamptz '2999-01-01 00:00+00', 3, 2,
        interval '9 s',
        'ik', 'dk', '{"m": 1}'::jsonb, 'queued' collate "C")
    $$,
    'which is the same as to enqueue it'
);
create temporary table returned (like jobq.job);
with made as (insert into jobq.job (kind) values ('w') returning *)
insert into returned select * from made;
select results_eq(
    'select * from returned', 'select * from jobq.job where kind = ''w''',
    'returning gives the job as it is stored'
);
select is(
    pg_temp.as_role('jobq_producer', i.statement), i.outcome,
    format('%s: %s', i.statement, i.outcome)
)
from (
    values
    ('insert into jobq.job (kind) select ''many'' from generate_series(1, 3)',
        '3 rows'),
    ('insert into jobq.job (kind, state) values (''x'', ''queued'')', '1 rows'),
    ('insert into jobq.job (kind, state) values (''x'', ''running'')',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, state) values (''x'', ''succeeded'')',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, previous_state) values (''x'', ''dead'')',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, job_id) values (''x'', gen_random_uuid())',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, attempt) values (''x'', 1)', 'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, result) values (''x'', ''1'')',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, lease) values (''x'', ''9 s'')',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, worker) values (''x'', ''w'')',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, created_at) values (''x'', ''1999-01-01'')',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, finished_at) values (''x'', now())',
        'JQ002 ILLEGAL_STATE'),
    ('insert into jobq.job (kind, priority) values (null, 1)', '22004 NULL_ARGUMENT'),
    ('insert into jobq.job (kind, metadata) values (''x'', ''[]'')',
        '22023 INVALID_ARGUMENT'),
    ('update jobq.job set state = ''cancelled''', '42501 '),
    ('delete from jobq.job', '55000 ')
) as i (statement, outcome);

-- Update of state performs the transition (S4)
create function pg_temp.update(job_id uuid, settings text)
returns text
language sql
as $$
select pg_temp.as_role('jobq_operator', format(
    'update jobq.job set %s where job_id = %L', update.settings, update.job_id
))
$$;
select jobq.enqueue('s4', '{"n": 1}', queue => 's4') as job_id \gset
select is(
    pg_temp.update(:'job_id', 'state = ''running'', worker = ''me'''), '1 rows',
    'an operator may claim by an update'
);
select results_eq(
    format(
        'select state, worker, attempt, lease_expires_at > now() from jobq.get_job(%L)',
        :'job_id'
    ),
    $$ values ('running' collate "C", 'me', 1, true) $$, 'with lease and attempt'
);
select is(
    pg_temp.update(:'job_id',
        'state = ''retrying'', last_error = ''boom'', last_error_code = ''E'','
        ' run_at = ''2001-01-01 00:00+00'''),
    '1 rows', 'fail'
);
select results_eq(
    format(
        'select state, last_error, last_error_code, run_at from jobq.get_job(%L)',
        :'job_id'
    ),
    $$
    values ('retrying' collate "C", 'boom', 'E', timestamptz '2001-01-01 00:00+00')
    $$,
    'with error and time'
);
select is(pg_temp.update(:'job_id', 'state = ''running'''), '1 rows', 'claim again');
select is(
    pg_temp.update(:'job_id', 'state = ''succeeded'', result = ''{"r": 1}'''), '1 rows',
    'complete'
);
select results_eq(
    format('select state, result, attempt from jobq.get_job(%L)', :'job_id'),
    $$ values ('succeeded' collate "C", '{"r": 1}'::jsonb, 2) $$, 'with a result'
);
select is(
    pg_temp.update(:'job_id', 'state = ''queued'''),
    '23503 job_archive_transition_fkey',
    'what has succeeded stays so'
);
select is(
    pg_temp.update(:'job_id', 'state = ''running'''),
    '23503 job_archive_transition_fkey',
    'and does not run again'
);
select jobq.enqueue('s4') as other \gset
select is(
    pg_temp.update(:'other', 'state = ''cancelled'', cancel_reason = ''no'''), '1 rows',
    'cancel'
);
select is((jobq.get_job(:'other')).cancel_reason, 'no', 'with a reason');
select is(pg_temp.update(:'other', 'state = ''queued'''), '1 rows', 'redrive');
select is((jobq.get_job(:'other')).state::text, 'queued', 'it waits again');
select is(
    pg_temp.update(:'other', u.settings), u.outcome,
    format('%s: %s', u.settings, u.outcome)
)
from (
    values
    ('state = ''succeeded''', '23503 job_transition_fkey'),
    ('state = ''retrying''', '23503 job_transition_fkey'),
    ('state = ''nonsense''', '23503 job_transition_fkey'),
    ('state = null', '23502 '),
    ('state = ''queued''', 'JQ002 IMMUTABLE'),
    ('priority = 9', 'JQ002 IMMUTABLE'),
    ('payload = ''{"n": 2}''', 'JQ002 IMMUTABLE'),
    ('state = ''running'', payload = ''{"n": 2}''', 'JQ002 IMMUTABLE'),
    ('state = ''running'', attempt = 7', 'JQ002 IMMUTABLE'),
    ('state = ''running'', lease_expires_at = ''2999-01-01''', 'JQ002 IMMUTABLE'),
    ('state = ''running'', job_id = gen_random_uuid()', 'JQ002 IMMUTABLE'),
    ('state = ''running'', previous_state = ''dead''', 'JQ002 IMMUTABLE'),
    ('state = ''running'', max_attempts = 99', 'JQ002 IMMUTABLE'),
    ('state = ''cancelled'', run_at = null', '22023 INVALID_ARGUMENT'),
    ('state = ''running'', worker = repeat(''x'', 257)', '22023 INVALID_ARGUMENT'),
    ('state = ''cancelled'', cancel_reason = repeat(''x'', 513)', '22023 INVALID_ARGUMENT'),
    ('state = ''cancelled'', last_error_code = repeat(''x'', 129)', '22023 INVALID_ARGUMENT')
) as u (settings, outcome);
select is(
    pg_temp.as_role('jobq_operator', 'delete from jobq.job'), '55000 ',
    'nobody deletes jobs'
);
select is(
    pg_temp.as_role('jobq_reader', 'update jobq.job set state = ''cancelled'''),
    '42501 ',
    'a reader only reads'
);
select jobq.enqueue('bulk', queue => 'bulk') from generate_series(1, 20);
select is(
    pg_temp.as_role('jobq_operator',
        'update jobq.job set state = ''cancelled'' where kind = ''bulk'''),
    '20 rows', 'one update may change many jobs'
);
select is(
    (select count(*) from jobq.job as j
    where j.kind = 'bulk' and j.state = 'cancelled'),
    20::bigint, 'each of them'
);
-- A job whose attempts are spent cannot be made to wait: it would break every claim
select jobq.enqueue('spent', max_attempts => 1) as spent \gset
select from jobq.claim_job(:'spent', 'w');
select is(
    pg_temp.update(:'spent', 'state = ''retrying'''), 'JQ002 ILLEGAL_STATE',
    'no update leaves a job that no claim could take'
);

-- Locks
select throws_ok(
    format('select job_id from jobq.job where state = ''queued'' limit 1 %s', l.clause),
    '0A000', null, l.clause || ' is refused, since it would lock nothing'
)
from (values ('for update skip locked'), ('for share')) as l (clause);
create function pg_temp.plan(query text)
returns text
language plpgsql
as $$
declare
    _plan json;
begin
    execute 'explain (format json) ' || query into _plan;
    return _plan;
end
$$;
select unalike(
    pg_temp.plan('select * from jobq.job where state = ' || quote_literal('queued')),
    '%Join%', 'which costs no query a join'
);

-- updated_at is the time of the last change of state, and of nothing else.
select jobq.enqueue('u', max_attempts => 9) as u \gset
select is(
    (select j.updated_at from jobq.job as j where j.job_id = :'u'),
    (select j.created_at from jobq.job as j where j.job_id = :'u'),
    'a new job has changed when it was made'
);
create function pg_temp.changes(job_id uuid, statement text)
returns boolean
language plpgsql
as $$
declare
    _before constant timestamptz := clock_timestamp();
begin
    execute format(changes.statement, changes.job_id);
    return (jobq.get_job(changes.job_id)).updated_at between _before and clock_timestamp();
end
$$;
select is(pg_temp.changes(:'u', s.statement), s.changes, 'updated_at after ' || s.statement)
from (
    values
    ('select jobq.change_many(''{"priority": 1}'', ''{%s}'')', false),
    ('select jobq.claim_job(%L, ''w'')', true),
    ('select jobq.set_progress(%L, 1, ''1'')', false),
    ('select jobq.release(%L, 1)', true),
    ('select jobq.claim_job(%L, ''w'')', true),
    ('select jobq.fail(%L, 2, ''e'', retry_in => ''0'')', true),
    ('select jobq.claim_job(%L, ''w'')', true),
    ('select jobq.fail(%L, 3, ''e'', retryable => false)', true),
    ('select jobq.redrive(%L)', true),
    ('select jobq.cancel(%L)', true)
) as s (statement, changes);

-- returning gives the row as the triggers have left it
select jobq.enqueue('returned') as started \gset
update jobq.job as j set state = 'running' where j.job_id = :'started'
returning j.attempt, j.lease_expires_at \gset
select ok(
    :'attempt' = '1' and :'lease_expires_at'::timestamptz > now(),
    'an update that returns the row returns its attempt and lease'
);
select ok(jobq.complete(:'started', :attempt), 'with which the job is completed');

select * from finish();
rollback;
