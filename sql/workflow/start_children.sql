-- Purpose: Enqueues jobs that a running job calls, each once by its name, and returns their
-- ids.
-- Invariant: all or none, under the lock of the caller's row. The id is saved as a step of
-- this name, so that a repeated call returns the same job. The caller can wait for the end:
-- call_children(), or wait_any() for job_ended:ID. A child is kept as long as its caller,
-- and cancelled with it unless cancel is false.
-- Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006, JQ010.
-- Never: BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT.
-- Argument children: a JSON array of 1 to 1000 objects with a name, 1 to 256 characters,
-- unique within the job and not beginning with event:; cancel, true by default; and the
-- members of enqueue_many() except keys, dedup, after, after_failure and batch_id
-- Column name: the name of the call
-- Column child_id: the job that was called
-- Example: select * from jobq.start_children(:'running', 1, '[{"name": "search", "kind": "send_email", "payload": {"to": "a@b.c"}}]');
create or replace function jobq.start_children(job_id uuid, attempt integer, children jsonb)
returns table (name text, child_id uuid)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _names text[];
    _taken text;
    _new jsonb;
    _jobs jobq_private.new_job[];
    _ids uuid[];
begin
    _names := jobq_private.child_names(start_children.children);
    perform jobq_private.hold_attempt(start_children.job_id, start_children.attempt);
    select c.name into _taken
    from unnest(_names) as c (name)
    join jobq_private.step as s on s.job_id = start_children.job_id and s.name = c.name
    where s.value #>> '{}' !~ '^[0-9a-f-]{36}$' or jsonb_typeof(s.value) <> 'string'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'children: the name %s is taken by a step', to_jsonb(_taken)
        ));
    end if;
    select jsonb_agg(c.child order by c.n) into _new
    from jsonb_array_elements(start_children.children) with ordinality as c (child, n)
    where not exists (
        select from jobq_private.step as s
        where s.job_id = start_children.job_id and s.name = c.child ->> 'name'
    );
    if _new is not null then
        _jobs := jobq_private.read_jobs(
            (select jsonb_agg(c - '{name,cancel}'::text[] order by n)
            from jsonb_array_elements(_new) with ordinality as e (c, n)),
            '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,expires_at,cost}'
        );
        for _n in 1 .. cardinality(_jobs) loop
            _jobs[_n].is_awaited := true;
            _jobs[_n].dedup := 'enqueue';
        end loop;
        _ids := (jobq_private.store_jobs(_jobs)).ids;
        insert into jobq_private.step (job_id, name, value, attempt)
        select start_children.job_id, e.c ->> 'name', to_jsonb(_ids[e.n]), start_children.attempt
        from jsonb_array_elements(_new) with ordinality as e (c, n);
        insert into jobq_private.edge (child, parent, after_failure, is_open)
        select
            start_children.job_id, _ids[e.n],
            case when e.c @> '{"cancel": false}' then 'detach' else 'call' end, false
        from jsonb_array_elements(_new) with ordinality as e (c, n);
        -- so that its end is followed: see on_end()
        update jobq_private.job as j
        set is_awaited = true
        where j.job_id = start_children.job_id and not j.is_awaited;
    end if;
    return query
    select c.name, (
        select (s.value #>> '{}')::uuid
        from jobq_private.step as s
        where s.job_id = start_children.job_id and s.name = c.name
    )
    from unnest(_names) with ordinality as c (name, n)
    order by c.n;
end
$$;

grant execute on function jobq.start_children to jobq_worker;
