-- Purpose: the highest priority below this one at which a job without a key is due;
-- null for none.
create or replace function jobq_private.due_priority(
    queue text, below integer, except_kinds text[]
)
returns integer
language sql
stable
as $$
    select j.priority
    from jobq_private.job as j
    where j.queue = due_priority.queue
    and j.state in ('queued', 'retrying')
    and j.priority < due_priority.below
    and j.due_at <= clock_timestamp()
    and (due_priority.except_kinds is null or j.kind <> all(due_priority.except_kinds))
    order by j.priority desc, j.due_at, j.job_id
    limit 1
$$;
