-- Deploy jobq:handler to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: Runs the function of a kind for leased jobs, with the caller's rights, and
-- returns the outcomes.
-- Invariant: runs with the caller's rights, in a subtransaction, so a failure undoes only its own
-- jobs; therefore it catches OTHERS. If a batch fails, its jobs run one by one, so that one job
-- cannot block the others. If statement_timeout or a cancel stops a job, the jobs after it are
-- released, and so are jobs whose function was dropped. Deferred constraints are checked after
-- each call, including the caller's own. Results of a batch, and results that may exceed a limit,
-- are stored here, where a refusal still undoes the work.
-- Raises: 22023. Never: NULL_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument run: the schema and the name of the function.
-- Argument is_batch: whether the function takes the payloads of many jobs.
-- Argument payloads: the jobs' payloads, parallel to job_ids; exactly one if is_batch is false.
-- Argument small: a result of one job up to this many bytes is left to the caller to
-- store; -1 stores all of them.
-- Column result: the result of the function for the job.
-- Column state: succeeded if the job is completed; queued if it was released; lost if
-- the function itself released or ended it; null if the caller must settle it.
-- Column error_code: the SQLSTATE of the error; null without an error.
-- Column error: its message.
-- Example: select * from jobq_internal.run_calls('{pg_catalog,jsonb_strip_nulls}', false, array[:'running'::uuid], '{1}', '{"{}"}', 100);
create or replace function jobq_internal.run_calls(
    run text[], is_batch boolean, job_ids uuid[], attempts integer[], payloads jsonb[],
    small integer
)
returns table (
    job_id uuid, attempt integer, result jsonb, state text, error_code text, error text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    _user constant name := current_user;
    _results jsonb[];
    _is_done boolean;
    _lost uuid[] := array[]::uuid[];
begin
    if num_nulls(run, is_batch, job_ids, attempts, payloads, small) > 0
        or (cardinality(job_ids), cardinality(attempts)) is distinct from
        (cardinality(payloads), cardinality(payloads))
    then
        raise exception using
            errcode = '22023', message = 'invalid argument value', constraint = 'INVALID_ARGUMENT',
            detail = 'job_ids, attempts and payloads must have the same length and no nulls',
            hint = 'the detail names the argument and its valid values';
    end if;
    begin
        if is_batch then
            execute format('select %I.%I($1)', run[1], run[2]) into _results using payloads;
        else
            execute format('select array[%I.%I($1)]', run[1], run[2]) into _results using payloads[1];
        end if;
        if cardinality(_results) <> cardinality(job_ids) then
            raise exception using errcode = '21000', message = 'the function did not return a result for each job';
        elsif current_user <> _user then
            raise exception using
                errcode = '42501', message = 'the function changed the role and did not reset it',
                hint = 'reset the role, or set it for the function: alter function ... set role';
        end if;
        set constraints all immediate;
        _is_done := is_batch or coalesce(octet_length(_results[1]::text), 0) > small;
        if _is_done then
            _lost := array(
                select c.job_id
                from jobq.complete_many(job_ids, attempts, to_jsonb(_results)) as c
                where c.outcome <> 'succeeded'
            );
        end if;
    exception when others or query_canceled or assert_failure then
        _results := null;
        _is_done := false;
        error_code := sqlstate;
        error := sqlerrm;
    end;
    if error_code in ('3F000', '42883') and to_regprocedure(format(
        '%I.%I(%s)', run[1], run[2], case when is_batch then 'jsonb[]' else 'jsonb' end
    )) is null then
        return query
        select r.job_id, r.attempt, null::jsonb, coalesce(r.state, 'lost'), null, null
        from jobq.release_many(job_ids, attempts) as r;
        return;
    end if;
    return query
    select u.job_id, u.attempt, _results[u.n], case
        when u.job_id = any(_lost) then 'lost'
        when _is_done then 'succeeded'
    end, error_code, error
    from unnest(job_ids, attempts) with ordinality as u (job_id, attempt, n)
    where error_code is null or error_code = '57014' or cardinality(job_ids) = 1;
    if found then
        return;
    end if;
    for _n in 1 .. cardinality(job_ids) loop
        select r.* into job_id, attempt, result, state, error_code, error
        from jobq_internal.run_calls(
            run, true, job_ids[_n:_n], attempts[_n:_n], payloads[_n:_n], small
        ) as r;
        return next;
        if error_code = '57014' then
            return query
            select r.job_id, r.attempt, null::jsonb, coalesce(r.state, 'lost'), null, null
            from jobq.release_many(job_ids[_n + 1:], attempts[_n + 1:]) as r;
            return;
        end if;
    end loop;
end
$$;
grant execute on function jobq_internal.run_calls to jobq_worker;

comment on function jobq_internal.run_calls is 'Runs the function of a kind for leased jobs, with the caller''s rights, and returns the outcomes.';

commit;
