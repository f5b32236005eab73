-- Purpose: whether something is left to do for a parent, a child or a batch.
-- Invariant: reads only. queues are those whose jobs the caller sees; null means all. What it
-- does not see whole is left to somebody else. Raises: nothing.
create or replace function jobq_private.is_unsettled(about text, id uuid, queues text[])
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select case is_unsettled.about
        when 'batch' then jobq_private.is_batch_due(is_unsettled.id, is_unsettled.queues)
        when 'parent' then exists (
            select from jobq_private.open_edge as e
            left join jobq_private.job as c on c.job_id = e.child
            where e.parent = is_unsettled.id
            and e.ended_as is not null
            and (e.closes or (e.dooms and c.state = 'blocked') or (
                is_unsettled.queues is not null
                and coalesce(c.queue <> all(is_unsettled.queues), true)
            ))
        )
        else coalesce(
            (
                select c.state = 'blocked' and (
                    not exists (
                        select from jobq_private.edge as o where o.child = c.job_id and o.is_open
                    )
                    or exists (
                        select from jobq_private.open_edge as e
                        left join jobq_private.job as p on p.job_id = e.parent
                        where e.child = c.job_id
                        and (not p.is_awaited or e.closes or e.dooms)
                    )
                )
                from jobq_private.job as c
                where c.job_id = is_unsettled.id
            ),
            is_unsettled.queues is not null and jobq_private.state_of(is_unsettled.id) is null
        )
    end
$$;

revoke all on function jobq_private.is_unsettled from public;

comment on function jobq_private.is_unsettled is
'Whether something is left to do for a parent, a child or a batch.';
