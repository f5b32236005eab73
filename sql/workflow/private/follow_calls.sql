-- Purpose: note for resolve() which of these ended jobs were called by others, and which
-- cancelled ones have called others.
create or replace function jobq_private.follow_calls(endings jobq_private.ending[])
returns void
language sql
as $$
    insert into jobq_private.pending (about, id)
    select 'call', e.job_id
    from unnest(endings) as e
    where exists (
        select from jobq_private.edge as d
        where d.parent = e.job_id and d.after_failure in ('call', 'detach')
    )
    union all
    select 'caller', e.job_id
    from unnest(endings) as e
    where e.state = 'cancelled' and exists (
        select from jobq_private.edge as d
        where d.child = e.job_id and d.after_failure = 'call'
    )
$$;
