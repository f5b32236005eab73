-- Purpose: take the idempotency keys of new jobs, and return the job that each key stands for:
-- the given one if the key was free or missing.
-- Invariant: the primary key of the keys decides between concurrent callers. Keys are locked in
-- the order of kind and key, so batches cannot deadlock. Of several jobs with one key, the first
-- gets it. A free key passes to the new job once, since it then stands for a live job.
create or replace function jobq_private.take_idempotency_keys(
    job_ids uuid[], kinds text[], keys text[]
)
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    _taken bigint;
    _holders uuid[];
begin
    loop
        insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
        select distinct on (g.kind, g.key) g.kind, g.key, g.job_id
        from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
        where g.key is not null
        order by g.kind, g.key, g.n
        on conflict on constraint idempotency_key_pkey do nothing;
        get diagnostics _taken = row_count;
        if _taken = cardinality(array_remove(keys, null)) then
            return job_ids;
        end if;
        update jobq_private.idempotency_key as k
        set
            job_id = f.job_id,
            created_at = case when k.job_id = f.job_id then k.created_at else now() end
        from (
            select distinct on (g.kind, g.key) g.*
            from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
            where g.key is not null
            order by g.kind, g.key, g.n
        ) as f
        where k.kind = f.kind and k.idempotency_key = f.key
        and case
            -- a redriven job's own key, not one that was just inserted, is locked, so that
            -- prune_keys() does not delete it meanwhile
            when k.job_id = f.job_id then k.created_at < now()
            else jobq_private.is_key_free(k.kind, k.job_id, k.created_at)
        end;

        select array_agg(
            case when g.key is null then g.job_id else k.job_id end order by g.n
        )
        into _holders
        from unnest(job_ids, kinds, keys) with ordinality as g (job_id, kind, key, n)
        left join jobq_private.idempotency_key as k
            on k.kind = g.kind and k.idempotency_key = g.key;
        -- a key that another transaction has deleted meanwhile is free
        exit when array_position(_holders, null) is null;
    end loop;
    return _holders;
end
$$;
