-- Purpose: run the function of a kind for jobs that claim_calls() has leased, for work().
-- Invariant: with the caller's rights. A subtransaction, so that what fails undoes nothing of other
-- jobs, and so here OTHERS is caught. A batch that fails is run again one by one, so that one
-- job of it cannot hold up the others, unless statement_timeout or a cancel stops one: then those
-- after it are given back, as are the jobs of a function that is no longer there. Constraints that
-- are deferred are looked at after each call, the caller's own too. The results of a batch, and one that a limit may refuse, are
-- stored here, where that still undoes the work.
-- Raises: 22023. Never: NULL_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument run: the schema and the name of the function.
-- Argument is_batch: whether it takes the payloads of many jobs at a time.
-- Argument payloads: the jobs' payloads, parallel to job_ids; one where is_batch is false.
-- Argument small: of how many bytes the result of one job is left to the caller to store; -1
-- leaves none.
-- Column result: what the function returned for the job.
-- Column state: succeeded where the job is completed already; queued where it was given back; lost where the function itself has
-- given it back or ended it; null where that is left to the caller.
-- Column error_code: the SQLSTATE of the error; null where there was none.
-- Column error: its message.
-- Example: select * from jobq_internal.run_calls('{pg_catalog,jsonb_strip_nulls}', false, array[:'running'::uuid], '{1}', '{"{}"}', 100);
create or replace function jobq_internal.run_calls(
    run text[], is_batch boolean, job_ids uuid[], attempts integer[], payloads jsonb[],
    small integer
)
returns table (
    job_id uuid, attempt integer, result jsonb, state text, error_code text, error text
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _user constant name := current_user;
    _results jsonb[];
    _is_done boolean;
    _is_stopped boolean := false;
    _job record;
    _lost uuid[] := array[]::uuid[];
begin
    if num_nulls(run, is_batch, job_ids, attempts, payloads, small) > 0
        or (cardinality(job_ids), cardinality(attempts)) is distinct from
        (cardinality(payloads), cardinality(payloads))
    then
        raise exception using
            errcode = '22023',
            message = 'invalid argument value',
            detail = 'job_ids, attempts and payloads must have the same length and no nulls',
            hint = 'the detail names the argument and its valid values',
            constraint = 'INVALID_ARGUMENT';
    end if;
    begin
        if run_calls.is_batch then
            execute format('select %I.%I($1)', run_calls.run[1], run_calls.run[2])
            into _results using run_calls.payloads;
            if cardinality(_results) <> cardinality(run_calls.job_ids) then
                raise exception using
                    errcode = '21000',
                    message = 'the function did not return a result for each job';
            end if;
        else
            execute format('select array[%I.%I($1)]', run_calls.run[1], run_calls.run[2])
            into _results using run_calls.payloads[1];
        end if;
        if current_user <> _user then
            raise exception using
                errcode = '42501',
                message = 'the function changed the role and did not reset it',
                hint = 'reset the role, or set it for the function: alter function ... set role';
        end if;
        set constraints all immediate;
        _is_done := case
            when run_calls.is_batch or pg_column_size(_results[1]) > 2000 then true
            else coalesce(octet_length(_results[1]::text), 0) > run_calls.small
        end;
        if _is_done then
            _lost := array(
                select c.job_id
                from jobq.complete_many(
                    run_calls.job_ids, run_calls.attempts, to_jsonb(_results)
                ) as c
                where c.outcome <> 'succeeded'
            );
        end if;
    exception
        when others or query_canceled or assert_failure then
            _results := null;
            _is_done := false;
            error_code := sqlstate;
            error := sqlerrm;
    end;
    if error_code in ('3F000', '42883') and to_regprocedure(format(
        '%I.%I(%s)', run_calls.run[1], run_calls.run[2],
        case when run_calls.is_batch then 'jsonb[]' else 'jsonb' end
    )) is null then
        return query
        select r.job_id, r.attempt, null::jsonb, coalesce(r.state, 'lost'), null, null
        from jobq.release_many(run_calls.job_ids, run_calls.attempts) as r;
        return;
    end if;
    return query
    select u.job_id, u.attempt, _results[u.n], case
        when u.job_id = any(_lost) then 'lost'
        when _is_done then 'succeeded'
    end, error_code, error
    from unnest(run_calls.job_ids, run_calls.attempts)
        with ordinality as u (job_id, attempt, n)
    where error_code is null or error_code = '57014' or cardinality(run_calls.job_ids) = 1;
    if found then
        return;
    end if;
    for _job in
        select u.*
        from unnest(run_calls.job_ids, run_calls.attempts, run_calls.payloads)
            as u (job_id, attempt, payload)
    loop
        if _is_stopped then
            return query
            select r.job_id, r.attempt, null::jsonb, coalesce(r.state, 'lost'), null, null
            from jobq.release_many(array[_job.job_id], array[_job.attempt]) as r;
            continue;
        end if;
        select r.*
        into job_id, attempt, result, state, error_code, error
        from jobq_internal.run_calls(
            run_calls.run, true, array[_job.job_id], array[_job.attempt], array[_job.payload],
            run_calls.small
        ) as r;
        return next;
        _is_stopped := coalesce(error_code = '57014', false);
    end loop;
end
$$;

grant execute on function jobq_internal.run_calls to jobq_worker;

comment on function jobq_internal.run_calls is
'Runs the function of a kind for leased jobs, with the caller''s rights, and returns the outcomes.';
