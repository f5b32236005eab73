-- Purpose: how many jobs of each queue run, are blocked, or are dead, for overviews.
-- Invariant: counts up to `most` jobs of a state over all queues, dead ones from the
-- newest; if a state has more, is_cut is true.
create or replace function jobq_private.count_states(most integer)
returns table (queue text, state text, jobs bigint, is_cut boolean) language sql stable as $$
    select s.queue, s.state, count(*), sum(count(*)) over (partition by s.state) > most
    from (
        (select j.queue, j.state from jobq_private.job as j where j.state = 'running' limit most + 1)
        union all
        (select j.queue, j.state from jobq_private.job as j where j.state = 'blocked' limit most + 1)
        union all
        (
            select a.queue, a.state
            from jobq_private.job_archive as a
            where a.state = 'dead'
            order by a.job_id desc
            limit most + 1
        )
    ) as s
    group by s.queue, s.state
$$;
