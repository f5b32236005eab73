-- Purpose: of jobs that a claim has locked in lanes of a queue, those that the limits of their kinds for each key let
-- pass; and the lanes of the others.
-- Invariant: what a key may start is counted after its gate's lock was had. Where another holds it, the
-- lane stays open. None passes one before it in its lane. Raises: nothing.
create or replace function jobq_private.pass_keys(
    queue text, now timestamptz, inout jobs tid[], inout places smallint[],
    out barred jobq_private.barred_lane[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _kinds text[];
    _gates uuid[];
    _held uuid[];
begin
    _kinds := array(
        select k.kind
        from jobq_private.kind as k
        where k.kind = any (array(
            select j.kind from jobq_private.job as j
            where j.ctid = any (pass_keys.jobs) and j.concurrency_key is not null
        ))
        and num_nonnulls(k.key_max_running, k.key_rate_limit, k.ordered) > 0
    );
    if _kinds = '{}' then
        return;
    end if;
    _gates := array(
        select distinct jobq_private.key_gate_id(j.kind, j.concurrency_key)
        from jobq_private.job as j
        where j.ctid = any (pass_keys.jobs)
        and j.kind = any (_kinds)
        and j.concurrency_key is not null
    );
    _held := jobq_private.hold_gates(queue, _gates);
    with candidate as materialized (
        select
            u.job, u.place, u.n, j.job_id, j.lane_id, j.kind, j.concurrency_key, g.gate_id,
            row_number() over (partition by g.gate_id order by u.n) as nth
        from unnest(pass_keys.jobs, pass_keys.places) with ordinality as u (job, place, n)
        join jobq_private.job as j on j.ctid = u.job
        cross join lateral (
            select case
                when j.kind = any (_kinds)
                then jobq_private.key_gate_id(j.kind, j.concurrency_key)
            end
            offset 0
        ) as g (gate_id)
    ),
    room as materialized (
        select d.gate_id, r.room, r.head_job_id
        from (
            select distinct c.gate_id, c.kind, c.concurrency_key
            from candidate as c
            where c.gate_id = any (_held)
        ) as d
        cross join lateral jobq_private.key_room(d.kind, d.concurrency_key, pass_keys.now) as r
    ),
    judged as materialized (
        select c.*, bool_and(
            c.gate_id is null or c.gate_id = any (_held)
            and c.nth <= coalesce(r.room, 2147483647)
            and coalesce(r.head_job_id, c.job_id) = c.job_id
        ) over (partition by c.lane_id order by c.n) as may_pass
        from candidate as c
        left join room as r on r.gate_id = c.gate_id
    ),
    stopped as (
        select distinct on (j.lane_id) j.lane_id, j.kind, j.concurrency_key, j.gate_id
        from judged as j
        where not j.may_pass
        order by j.lane_id, j.n
    ),
    barred as (
        select s.lane_id, s.kind, s.concurrency_key
        from stopped as s
        where s.gate_id = any (_held)
    )
    select
        coalesce((select array_agg(j.job order by j.n) from judged as j where j.may_pass), '{}'),
        (select array_agg(j.place order by j.n) from judged as j where j.may_pass),
        (select array_agg(b::jobq_private.barred_lane) from barred as b)
    into pass_keys.jobs, pass_keys.places, pass_keys.barred;
end
$$;

revoke all on function jobq_private.pass_keys from public;

comment on function jobq_private.pass_keys is
'Of jobs in lanes those that the limits of their kinds for each key let pass.';
