-- Purpose: the final states of these jobs, in the same order: null for a live job, gone
-- for one without any record.
-- Invariant: reads live jobs and the archive with the caller's snapshot, as sets; in
-- the archive only the days since the oldest id.
create or replace function jobq_private.ends_of(job_ids uuid[])
returns text[] language plpgsql stable strict set plan_cache_mode = force_generic_plan
set jit = off set enable_seqscan = off set enable_nestloop = off set enable_hashjoin = on
set enable_mergejoin = off as $$
declare
    _ended constant uuid[] := array(
        select i.job_id from unnest(ends_of.job_ids) as i (job_id)
        except
        select j.job_id from jobq_private.job as j where j.job_id = any(ends_of.job_ids)
    );
    _since constant timestamptz := (
        select jobq_private.id_time(i.job_id) - interval '1 day'
        from unnest(_ended) as i (job_id)
        order by i.job_id
        limit 1
    );
begin
    if _ended = '{}' then
        return array_fill(null::text, array[cardinality(ends_of.job_ids)]);
    end if;
    return array(
        select e.state
        from unnest(ends_of.job_ids) with ordinality as i (job_id, n)
        left join (
            select o.job_id, coalesce(l.state, 'gone') as state
            from unnest(_ended) as o (job_id)
            left join (
                select distinct on (a.job_id) a.job_id, a.state
                from jobq_private.job_archive as a
                where a.job_id = any(_ended) and a.finished_at >= _since
                order by a.job_id, a.finished_at desc
            ) as l on l.job_id = o.job_id
        ) as e on e.job_id = i.job_id
        order by i.n
    );
end
$$;
