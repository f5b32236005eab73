-- Purpose: lock the blocked jobs that will also wait for new ones, and return the paths from them
-- to the existing parents of new jobs, so that check_arrows() sees every cycle.
-- Invariant: in the order of ids; resolve() skips them until the commit, and then sees the new
-- parents. Concurrent calls that put new jobs between two blocked jobs could together create a
-- cycle, so these run one at a time until the commit. Raises: 22023, JQ002.
create or replace function jobq_private.hold_children(
    arrows jobq_private.arrow[], others uuid[], size integer
)
returns jobq_private.arrow[] language plpgsql as $$
declare
    _children constant uuid[] := array(
        select distinct others[a.child - size] from unnest(arrows) as a where a.child > size
    );
begin
    if exists (
        select from unnest(arrows) as a
        join jobq_private.job as j on j.job_id = others[a.parent - size]
        where a.parent > size and j.state = 'blocked'
    ) then
        perform jobq_private.check_argument(case
            when current_setting('transaction_isolation') in ('repeatable read', 'serializable')
            then 'before requires the isolation level read committed'
        end);
        perform pg_advisory_xact_lock(jobq_private.lock_class('joining'), 0);
    end if;
    perform from jobq_private.job as j
    where j.job_id = any(_children)
    order by j.job_id
    for no key update;
    perform jobq_private.check_problem('ILLEGAL_STATE', (
        select format(
            'job_id %s is %s; only a blocked job that no batch starts can wait for more jobs',
            c.job_id, jobq_private.state_of(c.job_id)
        )
        from unnest(_children) as c (job_id)
        where not exists (
            select from jobq_private.job as j where j.job_id = c.job_id and j.state = 'blocked'
        )
        or exists (
            select from jobq_private.batch as b
            where c.job_id in (b.on_success, b.on_end, b.on_first_death)
        )
        limit 1
    ));
    return array(
        select row(size + d.place, size + c.place)::jobq_private.arrow
        from unnest(others) with ordinality as c (job_id, place)
        cross join lateral jobq_private.tree(c.job_id, 'down') as t (job_id)
        join unnest(others) with ordinality as d (job_id, place) on d.job_id = t.job_id
        where c.job_id = any(_children) and d.place <> c.place
    );
end
$$;
