-- Purpose: let redriven jobs that died of an event timeout wait for the event again.
-- Invariant: deletes the last finished wait of each, whose timeout no handler caught;
-- other waits keep their results.
create or replace function jobq_private.forget_timeouts(job_ids uuid[])
returns void
language sql
as $$
    delete from jobq_private.step as s
    using (
        select distinct on (t.job_id) t.job_id, t.name
        from jobq_private.step as t
        where t.job_id = any(forget_timeouts.job_ids)
        and t.name like 'event:%'
        and t.name not like 'event:sleep:%'
        and t.value ->> 'outcome' = 'timed_out'
        order by t.job_id, t.saved_at desc
    ) as l
    where s.job_id = l.job_id and s.name = l.name
$$;
