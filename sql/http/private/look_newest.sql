-- Purpose: the newest jobs of any kind and state.
-- Invariant: reads only indexes, for pages that are visible to all.
-- Argument most: looks at so many at most; the other filters are those of show_jobs().
-- Returns: job_ids of all that were read, newest first; is_cut, whether there are more;
-- last_id, the last one read, if there are more.
create or replace function jobq_private.look_newest(
    since uuid, until uuid, most integer,
    out job_ids uuid[], out is_cut boolean, out last_id uuid
)
language plpgsql
stable
parallel safe
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
    select array_agg(l.job_id) into look_newest.job_ids
    from (
        (
            select j.job_id from jobq_private.job as j
            where j.job_id < look_newest.until and j.job_id >= look_newest.since
            order by j.job_id desc
            limit look_newest.most + 1
        )
        union all
        (
            select a.job_id from jobq_private.job_archive as a
            where a.job_id < look_newest.until and a.job_id >= look_newest.since
            order by a.job_id desc
            limit look_newest.most + 1
        )
        order by job_id desc
        limit look_newest.most + 1
    ) as l;
    look_newest.is_cut := coalesce(cardinality(look_newest.job_ids) > look_newest.most, false);
    if look_newest.is_cut then
        look_newest.last_id := look_newest.job_ids[look_newest.most];
        look_newest.job_ids := look_newest.job_ids[:look_newest.most];
    end if;
end
$$;
