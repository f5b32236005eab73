-- Purpose: of each of these lanes the job of an ordered kind that waits again in it, before which no other
-- may start; null where no kind is ordered.
-- Invariant: the earliest, where kinds have one each. Raises: nothing.
create or replace function jobq_private.lane_heads(lanes jobq_private.lane[])
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $$
declare
    _kinds constant text[] := array(
        select k.kind from jobq_private.kind as k where k.ordered
    );
begin
    if _kinds = '{}' then
        return null;
    end if;
    return array(
        select (
            select j.job_id
            from unnest(_kinds) as k (kind)
            join jobq_private.gate as g
                on g.gate_id = jobq_private.key_gate_id(k.kind, l.concurrency_key)
            join jobq_private.job as j on j.job_id = g.head_job_id
            where j.lane_id = l.lane_id and j.state in ('queued', 'retrying')
            order by j.run_at, j.job_id
            limit 1
        )
        from unnest(lane_heads.lanes) with ordinality as l
        order by l.ordinality
    );
end
$$;

revoke all on function jobq_private.lane_heads from public;

comment on function jobq_private.lane_heads is
'Of each of these lanes the job of an ordered kind that goes first.';
