-- Purpose: what holds blocked jobs up, and what has become of it.
-- Invariant: ended_as is null while the parent lives, gone when there is no trace of it.
-- What closes lets the child go on; what dooms it cancels it. The time of the id is worked out
-- once, and not for each partition. Raises: nothing.
create or replace view jobq_private.open_edge as
select
    e.child, e.parent, e.after_failure, p.ended_as,
    coalesce(
        p.ended_as = 'succeeded' or (p.ended_as is not null and e.after_failure = 'run'), false
    ) as closes,
    coalesce(
        p.ended_as <> 'succeeded'
        and (e.after_failure = 'cancel' or (e.after_failure = 'wait' and p.ended_as = 'gone')),
        false
    ) as dooms
from jobq_private.edge as e
cross join lateral (
    select jobq_private.id_time(e.parent) - interval '1 day' as since offset 0
) as t
cross join lateral (
    select nullif(coalesce(s.state, 'gone'), 'live') as ended_as
    from (
        select coalesce(
            (select 'live' from jobq_private.job as j where j.job_id = e.parent),
            (
                select a.state
                from jobq_private.job_archive as a
                where a.job_id = e.parent
                and a.finished_at >= t.since
                order by a.finished_at desc
                limit 1
            )
        ) as state
        offset 0
    ) as s
) as p
where e.is_open;

revoke all on table jobq_private.open_edge from public;

comment on view jobq_private.open_edge is
'What holds blocked jobs up, and what has become of it.';
