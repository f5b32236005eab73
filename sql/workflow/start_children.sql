-- Purpose: Enqueues jobs that a running job calls, each once by its name, and returns their ids.
-- Invariant: all or none, under the lock of the caller's row. The id is saved as a step of
-- this name, so that a repeated call returns the same job. The caller can wait for the end:
-- call_children(), or wait_any() for job_ended:ID. A child is kept as long as its caller,
-- and cancelled with it unless cancel is false.
-- Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006, JQ010.
-- Argument children: a JSON array of 1 to 1000 objects with a name, 1 to 256 characters,
-- unique within the job and not beginning with event:; cancel, true by default; and the
-- members of enqueue_many() except keys, dedup, after, after_failure and batch_id
-- Column name: the name of the call
-- Column child_id: the job that was called
-- Example: select * from jobq.start_children(:'running', 1, '[{"name": "search", "kind": "send_email", "payload": {"to": "a@b.c"}}]');
create or replace function jobq.start_children(job_id uuid, attempt integer, children jsonb)
returns table (name text, child_id uuid) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    _children constant jobq_private.child_call[] := jobq_private.start_calls(
        array[start_children.job_id], array[start_children.attempt],
        case when start_children.children is not null
            then jsonb_build_array(start_children.children)
        end
    );
begin
    if _children = '{}' then
        perform jobq_private.refuse_attempt(start_children.job_id, start_children.attempt);
    end if;
    -- so that its end is followed: see on_end()
    update jobq_private.job as j
    set is_awaited = true
    where j.job_id = start_children.job_id and not j.is_awaited;
    return query
    select c.name, c.child_id from unnest(_children) as c;
end
$$;
grant execute on function jobq.start_children to jobq_worker;
