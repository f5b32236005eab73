-- Purpose: the rows of pending that only a login with more queues can decide: those of batches,
-- those of jobs that the login may not see, and those of callers with a job that it may not see.
-- Invariant: none for a login that sees all queues. Parents and children are not included; see
-- unsettled(). Reads only.
create or replace function jobq_private.hidden_pending(
    pending jobq_private.pending[], queues text[]
)
returns bigint[] language sql stable as $$
    select array(
        select l.pending_id
        from unnest(pending) as l
        where queues is not null and case
            when l.about in ('parent', 'child') then false
            when l.about = 'event' then not exists (
                select from jobq_private.job as j where j.job_id = l.id and j.queue = any(queues)
            )
            else l.about = 'batch' or exists (
                select from jobq_private.edge as c
                join jobq_private.edge as e on e.child = c.child
                where l.id = case l.about when 'call' then c.parent else c.child end
                and c.after_failure in ('call', 'detach') and e.after_failure in ('call', 'detach')
                and (
                    jobq_private.state_of(e.child) is null
                    or jobq_private.state_of(e.parent) is null
                )
            )
        end
    )
$$;
