-- Purpose: how many attempts a job has that was made with max_attempts: those of its kind where the kind
-- was declared after the job was made, as by the first worker that knows it, and the job has the default.
-- Invariant: for a job that has failed; no SET clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.max_attempts_for(
    kind text, queue text, created_at timestamptz, max_attempts integer
)
returns integer
language sql
stable
parallel safe
as $$
    select coalesce(
        (
            select k.max_attempts
            from jobq_private.setting as g
            join jobq_private.kind as k
                on k.kind = max_attempts_for.kind
                and k.created_at >= max_attempts_for.created_at
            left join jobq_private.queue as q on q.queue = max_attempts_for.queue
            where coalesce(q.max_attempts, g.max_attempts) = max_attempts_for.max_attempts
        ),
        max_attempts_for.max_attempts
    )
$$;
