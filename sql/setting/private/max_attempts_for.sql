-- Purpose: how many attempts a failed job has: those of its kind if the kind was declared after
-- the job was made and the job has the default, else its own. Inlined, so no SET clause.
create or replace function jobq_private.max_attempts_for(
    kind text, queue text, created_at timestamptz, max_attempts integer
)
returns integer language sql stable as $$
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
