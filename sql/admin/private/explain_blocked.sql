-- Purpose: what a blocked job waits for, down to the jobs that wait for none, and why
-- those do not run.
-- Invariant: reads only; reads at most 1,000 ancestors, and explains the first five that wait for
-- none themselves. Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.explain_blocked(job jobq.job)
returns table (reason text, explanation text) language sql stable as $$
    select 'blocked', format(
        'waits for %s of %s jobs', count(*) filter (where e.is_open), count(*)
    )
    from jobq_private.edge as e
    where e.child = job.job_id
    having count(*) > 0
    union all
    select 'blocked', format(
        'waits for the end of batch %s: members live: %s, %s', b.batch_id,
        (select count(*) from jobq_private.job as m where m.batch_id = b.batch_id),
        case when b.sealed_at is null then 'not sealed' else 'sealed at ' || b.sealed_at end
    )
    from jobq_private.batch as b
    where b.batch_id::text = job.metadata ->> 'batch_id'
    and job.job_id in (b.on_success, b.on_end, b.on_first_death)
    union all
    select 'held_up', format(
        'job_id %s, %s', h.job_id,
        coalesce(
            j.kind || ': ' || x.reason || ', ' || x.explanation,
            j.kind, 'which was deleted or is not visible'
        )
    )
    from (
        select a.* from jobq_private.holders(job.job_id) as a order by a.job_id limit 5
    ) as h
    left join lateral (
        select v.job_id, v.kind from jobq.job as v
        where v.job_id = h.job_id and h.state is not null
        limit 1
    ) as j on true
    left join lateral (
        select e.* from jobq.explain(j.job_id) as e where j.job_id is not null limit 1
    ) as x on true
$$;
