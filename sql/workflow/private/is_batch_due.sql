-- Purpose: whether something is left to do for a batch: it could end, or call about a death.
-- Invariant: reads only. Who does not see all queues leaves batches to somebody else, since
-- members may be in any. Raises: nothing.
create or replace function jobq_private.is_batch_due(batch_id uuid, queues text[])
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select is_batch_due.queues is not null or exists (
        select from jobq_private.batch as b
        where b.batch_id = is_batch_due.batch_id
        and jobq_private.goes_on(b)
        and (
            (b.sealed_at is not null and not exists (
                select from jobq_private.job as j where j.batch_id = b.batch_id
            ))
            or (
                exists (
                    select from jobq_private.job as c
                    where c.job_id = b.on_first_death and c.state = 'blocked'
                )
                and exists (
                    select from jobq_private.job_archive as a
                    where a.batch_id = b.batch_id and a.state = 'dead'
                )
            )
        )
    )
$$;

revoke all on function jobq_private.is_batch_due from public;

comment on function jobq_private.is_batch_due is
'Whether something is left to do for a batch.';
