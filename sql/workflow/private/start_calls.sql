-- Purpose: enqueue the jobs that others call, unless they were called before, and return all
-- with their ids; those of attempts that have lost their leases are left out.
-- Invariant: as start_children(). Callers are locked in the order of their ids. Functions that
-- call it pin the planner's settings.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
-- Never: BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT, JOB_NOT_FOUND, ILLEGAL_STATE.
create or replace function jobq_private.start_calls(
    job_ids uuid[], attempts integer[], calls jsonb
)
returns jobq_private.child_call[]
language plpgsql
as $$
declare
    _children jobq_private.child_call[] := jobq_private.read_calls(job_ids, attempts, calls);
    _held uuid[];
    _attempts integer[];
    _new jsonb;
    _ids uuid[];
    _jobs jobq_private.new_job[];
    _job jobq_private.new_job;
begin
    select array_agg(h.job_id), array_agg(h.attempt) into _held, _attempts
    from (
        select j.job_id, j.attempt
        from jobq_private.job as j
        where j.job_id = any(job_ids) and j.lease_expires_at is not null
        order by j.job_id
        for no key update
    ) as h;
    _children := array(
        select row(
            c.n, c.job_id, c.attempt, c.name, c.document,
            case
                when s.value is null then jobq_private.new_id(g.shard_id)
                else jobq_private.ended_job('job_ended:' || (s.value #>> '{}'))
            end,
            s.value is null
        )::jobq_private.child_call
        from unnest(_children) with ordinality
            as c (n, job_id, attempt, name, document, child_id, is_new, place)
        cross join jobq_private.setting as g
        cross join lateral (
            -- no join, which could read all steps by a plan of an empty table
            select (
                select t.value
                from jobq_private.step as t
                where t.job_id = c.job_id and t.name = c.name
                limit 1
            )
            offset 0
        ) as s (value)
        -- "is true": hashed, no join
        where ((c.job_id, c.attempt) in (select h, a from unnest(_held, _attempts) as t (h, a))) is true
        order by c.place
    );
    perform jobq_private.check_argument((
        select format('children: the name %s is taken by a step', to_jsonb(c.name))
        from unnest(_children) as c
        where c.child_id is null
        limit 1
    ));
    select
        jsonb_agg(c.document - '{name,cancel}'::text[] order by c.place),
        array_agg(c.child_id order by c.place)
    into _new, _ids
    from unnest(_children) with ordinality
        as c (n, job_id, attempt, name, document, child_id, is_new, place)
    where c.is_new;
    if _new is null then
        return _children;
    end if;
    _jobs := jobq_private.read_records(
        null::jobq_private.new_job, 'jobs', _new,
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,expires_at,cost}'
    );
    for _n in 1 .. cardinality(_jobs) loop
        _job := _jobs[_n];
        _job.job_id := _ids[_n];
        _job.is_awaited := true;
        _job.dedup := 'enqueue';
        _jobs[_n] := _job;
    end loop;
    perform jobq_private.store_jobs(_jobs);
    insert into jobq_private.step (job_id, name, value, attempt)
    select c.job_id, c.name, to_jsonb(c.child_id), c.attempt
    from unnest(_children) as c
    where c.is_new;
    insert into jobq_private.edge (child, parent, after_failure, is_open)
    select
        c.job_id, c.child_id,
        case when c.document @> '{"cancel": false}' then 'detach' else 'call' end, false
    from unnest(_children) as c
    where c.is_new;
    return _children;
end
$$;
