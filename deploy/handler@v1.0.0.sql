-- Deploy jobq:handler to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: whether a login may run functions of this owner: its own, those of the
-- database's owner, and those of superusers.
-- Invariant: membership in the owning role is not enough, because any other member
-- could have created the function.
create or replace function jobq_private.is_trusted(owner oid, login name)
returns boolean
language sql
stable
parallel safe
as $$
    select exists (
        select from pg_catalog.pg_roles as o
        where o.oid = is_trusted.owner and (o.rolsuper or o.rolname = is_trusted.login)
    )
    or is_trusted.owner = (
        select d.datdba
        from pg_catalog.pg_database as d
        where d.datname = current_database()
    )
$$;

-- Purpose: the function of a kind: its owner, and whether the login and its current
-- role may execute it; no row if there is none.
-- Invariant: looked up in the catalog by schema and name, independent of the search
-- path. It takes one jsonb and returns jsonb, or takes and returns jsonb[]; the latter
-- is preferred.
create or replace function jobq_private.sql_function(run text)
returns table (function oid, owner oid, may_execute boolean, is_batch boolean)
language sql
stable
parallel safe
as $$
    select
        p.oid,
        p.proowner,
        (
            select bool_and(
                has_function_privilege(u.name, p.oid, 'execute')
                and has_schema_privilege(u.name, n.oid, 'usage')
            )
            from (
                values (session_user), (nullif(current_setting('role'), 'none')::name)
            ) as u (name)
            where u.name is not null
        ),
        p.prorettype = 'jsonb[]'::regtype
    from pg_catalog.pg_proc as p
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = (parse_ident(sql_function.run))[1]
    and p.proname = (parse_ident(sql_function.run))[2]
    and (p.proargtypes, p.prorettype) in (
        ('3802'::oidvector, 'jsonb'::regtype), ('3807'::oidvector, 'jsonb[]'::regtype)
    )
    and p.prokind = 'f'
    and p.provariadic = 0
    and not p.proretset
    order by p.prorettype desc
    limit 1
$$;

-- Purpose: the reason why no worker's login can run an existing function; null if one
-- can.
-- Invariant: reads only. Superusers count only if no other login is a worker's;
-- otherwise they would hide that no worker may execute it.
create or replace function jobq_private.sql_function_bar(run text)
returns text
language sql
stable
parallel safe
as $$
    with login as (
        select r.rolname, r.rolsuper, bool_and(r.rolsuper) over () as is_alike
        from pg_catalog.pg_roles as r
        where r.rolcanlogin
        and pg_has_role(r.rolname, 'jobq_worker', 'usage')
    )
    select format(
        'a worker whose login may call %s and trusts its owner %s', sql_function_bar.run,
        pg_get_userbyid(f.owner)
    )
    from jobq_private.sql_function(sql_function_bar.run) as f
    where not exists (
        select from login as l
        where l.rolsuper = l.is_alike
        and jobq_private.is_trusted(f.owner, l.rolname)
        and has_function_privilege(l.rolname, f.function, 'execute')
        and has_schema_privilege(
            l.rolname, (parse_ident(sql_function_bar.run))[1], 'usage'
        )
    )
$$;

-- Purpose: the reason why a kind cannot run this function: it is missing, or has
-- another signature; null if it can.
create or replace function jobq_private.sql_function_problem(run text)
returns text
language sql
stable
parallel safe
as $$
    select format(
        '%s(jsonb) returns jsonb, or the same with jsonb[]; found: %s', sql_function_problem.run,
        coalesce((
            select string_agg(format(
                '%s(%s) returns %s',
                case p.prokind when 'a' then 'aggregate ' when 'p' then 'procedure ' else '' end,
                pg_get_function_arguments(p.oid),
                coalesce(pg_get_function_result(p.oid), 'nothing')
            ), ', ')
            from pg_catalog.pg_proc as p
            join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
            where array[n.nspname, p.proname]::text[] = parse_ident(sql_function_problem.run)
        ), 'none')
    )
    where not exists (select from jobq_private.sql_function(sql_function_problem.run) as f)
$$;

-- Purpose: Leases jobs whose kinds are functions that the login may run.
-- Invariant: SKIP LOCKED. Claims only functions that get_call() allows. Jobs under a
-- limit lock the limit until the commit, so nobody else starts jobs there.
-- Raises: 22004, 22023.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Column run: the schema and the name of the function.
-- Column is_batch: whether the function takes the payloads of many jobs.
-- Column retry_on: the errors that are retried, by SQLSTATE or class.
-- Example: select * from jobq_internal.claim_calls('{default}', 10);
create or replace function jobq_internal.claim_calls(queues text[], max_jobs integer default 1)
returns table (
    job_id uuid, attempt integer, kind text, payload jsonb, run text[], is_batch boolean,
    retry_on text[]
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    return query
    with runnable as materialized (
        select k.kind, g.run, g.is_batch, g.retry_on
        from jobq_private.kind as k
        cross join lateral jobq_internal.get_call(k.kind) as g
        where k.run is not null
        and g.may_run
    )
    select c.job_id, c.attempt, c.kind, c.payload, r.run, r.is_batch, r.retry_on
    from jobq.claim(
        claim_calls.queues, session_user, claim_calls.max_jobs,
        kinds => array(select r.kind from runnable as r)
    ) with ordinality as c
    left join runnable as r on r.kind = c.kind  -- left: so that queues are always checked
    order by c.ordinality;
end
$$;

grant execute on function jobq_internal.claim_calls to jobq_worker;

comment on function jobq_internal.claim_calls is 'Leases jobs whose kinds are functions that the login may run.';

-- Purpose: Returns the function of a kind, and whether the login may run it.
-- Invariant: a login may run only functions that it may execute and whose owner it
-- trusts: itself, the owner of the database, or a superuser. So nobody who can declare
-- a kind can run code as another login. Raises: 22004.
-- Returns: one row; none if the kind is not a function.
-- Column may_run: whether the login may run it; false if the function does not exist.
-- Column is_batch: whether the function takes the payloads of many jobs.
-- Column run: the schema and the name of the function.
-- Column retry_on: the errors that are retried, by SQLSTATE or class.
-- Example: select * from jobq_internal.get_call('send_email');
create or replace function jobq_internal.get_call(kind text)
returns table (may_run boolean, is_batch boolean, run text[], retry_on text[])
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.check_given('kind', num_nulls(get_call.kind));
    select
        coalesce(f.may_execute and jobq_private.is_trusted(f.owner, session_user), false),
        coalesce(f.is_batch, false), parse_ident(k.run),
        coalesce(k.retry_on, '{08,40,53,55,57}')
    from jobq_private.kind as k
    left join lateral jobq_private.sql_function(k.run) as f on true
    where k.kind = get_call.kind
    and k.run is not null
$$;

grant execute on function jobq_internal.get_call to jobq_worker;

comment on function jobq_internal.get_call is 'Returns the function of a kind, and whether the login may run it.';

-- Purpose: Runs the function of a kind for leased jobs, with the caller's rights, and
-- returns the outcomes.
-- Invariant: runs with the caller's rights, in a subtransaction, so a failure undoes
-- only its own jobs; therefore it catches OTHERS. If a batch fails, its jobs run one by
-- one, so that one job cannot block the others. If statement_timeout or a cancel stops
-- a job, the jobs after it are released, and so are jobs whose function was dropped.
-- Deferred constraints are checked after each call, including the caller's own. Results
-- of a batch, and results that may exceed a limit, are stored here, where a refusal
-- still undoes the work.
-- Raises: 22023. Never: NULL_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument run: the schema and the name of the function.
-- Argument is_batch: whether the function takes the payloads of many jobs.
-- Argument payloads: the jobs' payloads, parallel to job_ids; exactly one if is_batch
-- is false.
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
    for _job in
        select u.* from unnest(job_ids, attempts, payloads) as u (job_id, attempt, payload)
    loop
        if _is_stopped then
            return query
            select r.job_id, r.attempt, null::jsonb, coalesce(r.state, 'lost'), null, null
            from jobq.release_many(array[_job.job_id], array[_job.attempt]) as r;
            continue;
        end if;
        select r.* into job_id, attempt, result, state, error_code, error
        from jobq_internal.run_calls(
            run, true, array[_job.job_id], array[_job.attempt], array[_job.payload], small
        ) as r;
        return next;
        _is_stopped := coalesce(error_code = '57014', false);
    end loop;
end
$$;

grant execute on function jobq_internal.run_calls to jobq_worker;

comment on function jobq_internal.run_calls is 'Runs the function of a kind for leased jobs, with the caller''s rights, and returns the outcomes.';

-- Purpose: Runs jobs whose kinds are database functions, with the caller's rights, and
-- returns how each ended.
-- Invariant: runs with the caller's rights, in the caller's transaction: a job's work
-- and its completion commit together or not at all. Each job, or each batch, is a
-- subtransaction: run_calls(). If statement_timeout or a cancel stops one, its jobs
-- fail, and the jobs claimed after it are released. The kind lists the errors that are
-- retried; others are final. Results that cannot exceed a limit are stored by one
-- statement at the end.
-- Raises: 22004, 22023. Never: PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument max_jobs: maximum number of jobs, 0 to 10000.
-- Column state: succeeded, retrying, dead, cancelled, queued if the job was released,
-- or lost if its function itself released or ended it.
-- Example: select * from jobq.work('{default}', 10);
create or replace function jobq.work(
    queues text[] default '{default}', max_jobs integer default 100
)
returns table (job_id uuid, kind text, state text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _call record;
    _job record;
    _small constant integer := least(
        308, 2 * (jobq.settings() ->> 'max_payload_depth')::integer
    );
    _is_stopped boolean := false;
    _done uuid[] := array[]::uuid[];
    _kinds text[] := array[]::text[];
    _attempts integer[] := array[]::integer[];
    _results jsonb[] := array[]::jsonb[];
begin
    for _call in
        select
            c.kind, c.run, c.is_batch, c.retry_on,
            array_agg(c.job_id order by c.n) as job_ids,
            array_agg(c.attempt order by c.n) as attempts,
            array_agg(c.payload order by c.n) as payloads
        from jobq_internal.claim_calls(work.queues, work.max_jobs) with ordinality
            as c (job_id, attempt, kind, payload, run, is_batch, retry_on, n)
        group by c.kind, c.run, c.is_batch, c.retry_on, case when not c.is_batch then c.n end
        order by min(c.n)
    loop
        kind := _call.kind;
        if _is_stopped then
            return query
            select r.job_id, _call.kind, coalesce(r.state, 'lost')
            from jobq.release_many(_call.job_ids, _call.attempts) as r;
            continue;
        end if;
        for _job in
            select r.*
            from jobq_internal.run_calls(
                _call.run, _call.is_batch, _call.job_ids, _call.attempts, _call.payloads,
                _small
            ) as r
        loop
            job_id := _job.job_id;
            state := _job.state;
            if _job.error_code is not null then
                _is_stopped := _is_stopped or _job.error_code = '57014';
                state := (
                    select coalesce(f.state, 'lost')
                    from jobq.fail_many(jsonb_build_array(jsonb_build_object(
                        'job_id', job_id, 'attempt', _job.attempt,
                        'error', _job.error, 'error_code', _job.error_code,
                        'retryable', left(_job.error_code, 2) = any(_call.retry_on)
                        or _job.error_code = any(_call.retry_on)
                    ))) as f
                );
            elsif state is null then
                _done := array_append(_done, _job.job_id);
                _kinds := array_append(_kinds, kind);
                _attempts := array_append(_attempts, _job.attempt);
                _results := array_append(_results, _job.result);
                continue;
            end if;
            return next;
        end loop;
    end loop;
    return query
    select c.job_id, _kinds[c.n], replace(c.outcome, 'repeated', 'lost')
    from jobq.complete_many(_done, _attempts, to_jsonb(_results))
        with ordinality as c (job_id, attempt, outcome, n);
end
$$;

grant execute on function jobq.work to jobq_worker;

comment on function jobq.work is 'Runs jobs whose kinds are database functions, with the caller''s rights, and returns how each ended.';

-- Purpose: refuse a kind whose function is missing, has another signature, or may not
-- be executed by the declaring login.
-- Invariant: applies to every writer. Raises: 42501, JQ007.
create or replace function jobq_private.kind_run()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    -- A name that parse_ident() accepts without quotes.
    _name constant text := '([a-z_]|[^\u0001-\u007f])([a-z0-9_$]|[^\u0001-\u007f])*';
begin
    perform jobq_private.check_problem('FUNCTION_NOT_FOUND', case
        when new.run !~* format('^%1$s\.%1$s$', _name)
        then format('run must be a schema and a function without quotes: %s', new.run)
        else jobq_private.sql_function_problem(new.run)
    end);
    perform jobq_private.check_problem('FUNCTION_DENIED', (
        select new.run from jobq_private.sql_function(new.run) as f where not f.may_execute
    ));
    return new;
end
$$;

create or replace trigger kind_run
before insert or update of run on jobq_private.kind
for each row when (new.run is not null) execute function jobq_private.kind_run();

commit;
