-- Purpose: run jobs whose kinds are functions of the database, with no worker but the caller.
-- Invariant: with the caller's rights, in the caller's transaction: a job's work and its
-- completion are committed together or not at all. Each job is a subtransaction, so that one
-- that fails undoes nothing of the others, and so here OTHERS is caught. When statement_timeout
-- or a cancel stops a job, that job fails, and what was leased after it is given back. Errors
-- of the classes 08, 40, 53, 55 and 57 are tried again, others are final. Results that no
-- limit can refuse are stored by one statement in the end.
-- Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument max_jobs: at most so many, 0 to 10000.
-- Column state: succeeded, retrying, dead, cancelled, or queued where a job was given back.
-- Example: select * from jobq.work('{default}', 10);
create or replace function jobq.work(
    queues text[] default '{default}', max_jobs integer default 100
)
returns table (job_id uuid, kind text, state text)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _job record;
    _result jsonb;
    _is_stopped boolean := false;
    _done uuid[] := array[]::uuid[];
    _attempts integer[] := array[]::integer[];
    _results jsonb[] := array[]::jsonb[];
begin
    for _job in select c.* from jobq.claim_calls(work.queues, work.max_jobs) as c loop
        job_id := _job.job_id;
        kind := _job.kind;
        if _is_stopped then
            perform jobq.release(_job.job_id, _job.attempt);
            state := 'queued';
            return next;
            continue;
        end if;
        begin
            execute format('select %I.%I($1)', _job.run[1], _job.run[2])
            into _result using _job.payload;
            set constraints all immediate;
            if octet_length(_result::text) > 308
                or jsonb_typeof(_result) in ('object', 'array')
            then
                perform jobq.complete(_job.job_id, _job.attempt, _result);
            else
                _done := _done || _job.job_id;
                _attempts := _attempts || _job.attempt;
                _results := array_append(_results, _result);
            end if;
            state := 'succeeded';
        exception
            when others or query_canceled or assert_failure then
                _is_stopped := sqlstate = '57014';
                state := jobq.fail(
                    _job.job_id, _job.attempt, sqlerrm, sqlstate,
                    left(sqlstate, 2) = any('{08,40,53,55,57}')
                );
        end;
        return next;
    end loop;
    perform jobq.complete_many(_done, _attempts, to_jsonb(_results));
end
$$;

revoke all on function jobq.work from public;
grant execute on function jobq.work to jobq_worker;

comment on function jobq.work is
'Runs jobs whose kinds are functions of the database, with the caller''s rights, and says how each ended.';
