-- Purpose: update what depends on redriven or changed jobs. Waits that the end of a job has
-- interrupted begin again, but for sleeps. Jobs that died of an event timeout, or of the failure
-- of a job that they called, wait for it again. The parents of blocked jobs are checked again,
-- and so are jobs that were not redriven although the edges of their children were opened.
-- Invariant: an unnecessary check costs a row of pending. Jobs whose parents are all redriven
-- with them need none: their parents are marked as awaited, and cannot end before the commit.
create or replace function jobq_private.follow_redriven(job_ids uuid[])
returns void language plpgsql as $$
declare
    _back uuid[];
    _ended uuid[];
    _blocked uuid[];
    _timed_out uuid[];
    _failed uuid[];
begin
    select
        coalesce(array_agg(j.job_id), '{}'),
        array_agg(j.job_id) filter (where j.previous_state in ('dead', 'cancelled')),
        array_agg(j.job_id) filter (
            where j.state = 'blocked' and j.previous_state in ('dead', 'cancelled')
        ),
        array_agg(j.job_id) filter (where j.last_error_code = 'EVENT_TIMEOUT'),
        array_agg(j.job_id) filter (where j.last_error_code = 'CHILD_FAILED')
    into _back, _ended, _blocked, _timed_out, _failed
    from jobq_private.job as j
    where j.job_id = any(follow_redriven.job_ids);
    delete from jobq_private.waiter as w
    where w.job_id = any(_ended) and w.event not like 'sleep:%';
    -- the last finished wait of each, whose timeout no handler caught; every failed child
    delete from jobq_private.step as s
    using (
        (
            select distinct on (t.job_id) t.job_id, t.name
            from jobq_private.step as t
            where t.job_id = any(_timed_out)
            and t.name like 'event:%'
            and t.name not like 'event:sleep:%'
            and t.value ->> 'outcome' = 'timed_out'
            order by t.job_id, t.saved_at desc
        )
        union all
        select t.job_id, t.name
        from jobq_private.step as t
        where t.job_id = any(_failed)
        and t.name like 'event:%'
        and starts_with(coalesce('event:' || (t.value ->> 'event'), t.name), 'event:job_ended:')
        and t.value #>> '{payload,state}' <> 'succeeded'
    ) as l
    where s.job_id = l.job_id and s.name = l.name;

    with batch as materialized (
        select b.*
        from jobq_private.batch as b
        where b.on_success = any(_blocked)
        or b.on_end = any(_blocked)
        or b.on_first_death = any(_blocked)
    )
    insert into jobq_private.pending (about, id)
    select 'parent', i.job_id
    from unnest(follow_redriven.job_ids) as i (job_id)
    where i.job_id not in (select b from unnest(_back) as b)
    union all
    select 'batch', b.batch_id from batch as b
    union all
    select 'child', w.job_id
    from unnest(_blocked) as w (job_id)
    where (
        exists (
            select from jobq_private.edge as e
            where e.child = w.job_id and e.is_open and e.parent <> all(_back)
        )
        or not exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    )
    and not exists (
        select from batch as b where w.job_id in (b.on_success, b.on_end, b.on_first_death)
    );
end
$$;
