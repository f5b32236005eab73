-- Purpose: close the edges of parents that have ended; release children without open
-- edges, and cancel those that can never run.
-- Invariant: the caller has locked the blocked children, in held. For a child that is
-- no longer blocked, records only what cannot change: that a parent has succeeded. Open
-- edges of a cancelled child stay, so that it waits again after a redrive.
create or replace function jobq_private.close_edges(
    edges jobq_private.pending_edge[], held uuid[], queues text[]
)
returns void language plpgsql set jit = off set enable_hashjoin = off as $$
declare
    _cancelled uuid[];
    _attempts integer[];
    _released uuid[];
begin
    update jobq_private.edge as e set is_open = false
    where e.ctid = any(array(
        select d.ctid
        from unnest(edges) as t
        join jobq_private.edge as d on d.child = t.child and d.parent = t.parent and d.is_open
        where case
            when t.is_held then t.outcome = 'closes'
            else queues is null and t.ended_as = 'succeeded' and not exists (
                select from jobq_private.job as j where j.job_id = t.child and j.state = 'blocked'
            )
        end
        for update of d skip locked
    ));

    with doomed as materialized (
        select distinct on (t.child) t.child, t.parent, t.ended_as
        from unnest(edges) as t
        where t.is_held and t.outcome = 'dooms' and (queues is null or t.ended_as <> 'gone')
        order by t.child, t.parent
    ),
    cancelled as (
        update jobq_private.job as j
        set
            cancel_reason = format('the job waited for job_id %s, which is %s', d.parent, d.ended_as),
            last_error_code = case d.ended_as
                when 'gone' then 'PARENT_GONE' else 'PARENT_FAILED'
            end,
            last_error = format('job_id %s is %s', d.parent, d.ended_as)
        from doomed as d
        where j.job_id = d.child
        returning j.job_id, j.attempt
    )
    select array_agg(c.job_id), array_agg(c.attempt) into _cancelled, _attempts
    from cancelled as c;
    if _cancelled is not null then
        perform jobq_private.archive_jobs(_cancelled, _attempts, 'cancelled');
    end if;

    with released as (
        -- Due as of now, so that no claim that began before its parents' ends takes
        -- one.
        update jobq_private.job as j
        set state = 'queued', run_at = greatest(j.run_at, clock_timestamp())
        where j.job_id = any(held)
        and (j.state = 'blocked') is true
        -- From the last one: parents mostly end in order, so an open edge is found
        -- soon.
        and (
            select true
            from jobq_private.edge as e
            where e.child = j.job_id and e.is_open
            order by e.parent desc
            limit 1
        ) is null
        returning j.job_id
    )
    select array_agg(r.job_id) into _released from released as r;
    if _released is not null then
        perform jobq_private.announce_jobs(_released);
    end if;
end
$$;
