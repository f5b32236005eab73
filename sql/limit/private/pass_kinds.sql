-- Purpose: of jobs that a claim has locked in lanes, those that the gates of their kinds let
-- pass; and the lanes of the others, with the gates that they are to wait for.
-- Invariant: what a kind may start is counted after its gate's lock was had. Where another holds
-- it, the lane stays open. None passes one before it in its lane: a lane waits for the gate of the
-- first that may not start. Raises: nothing.
create or replace function jobq_private.pass_kinds(
    now timestamptz, inout jobs tid[], inout places smallint[],
    out barred uuid[], out gates uuid[]
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
    _held uuid[];
begin
    _held := array(
        select g.gate_id
        from jobq_private.gate as g
        where g.kind = any (array(
            select j.kind from jobq_private.job as j where j.ctid = any (pass_kinds.jobs)
        ))
        and g.queue is null
        for update skip locked
    );
    with candidate as materialized (
        select
            u.job, u.place, u.n, j.lane_id, g.gate_id, g.kind,
            row_number() over (partition by g.gate_id order by u.n) as nth
        from unnest(pass_kinds.jobs, pass_kinds.places)
            with ordinality as u (job, place, n)
        join jobq_private.job as j on j.ctid = u.job
        left join jobq_private.gate as g on g.kind = j.kind and g.queue is null
    ),
    room as materialized (
        select d.gate_id, case
            when d.gate_id <> all (_held) then 0
            else (select r.room from jobq_private.gate_room(null, d.kind, pass_kinds.now) as r)
        end as room
        from (
            select distinct c.gate_id, c.kind from candidate as c where c.gate_id is not null
        ) as d
    ),
    judged as materialized (
        select c.*, bool_and(c.nth <= coalesce(r.room, 2147483647)) over (
            partition by c.lane_id order by c.n
        ) as may_pass
        from candidate as c
        left join room as r on r.gate_id = c.gate_id
    ),
    stopped as (
        select distinct on (j.lane_id) j.lane_id, j.gate_id
        from judged as j
        where not j.may_pass
        order by j.lane_id, j.n
    ),
    closed as (
        select s.* from stopped as s where s.gate_id = any (_held)
    )
    select
        coalesce((select array_agg(j.job order by j.n) from judged as j where j.may_pass), '{}'),
        (select array_agg(j.place order by j.n) from judged as j where j.may_pass),
        coalesce((select array_agg(c.lane_id order by c.lane_id) from closed as c), '{}'),
        coalesce((select array_agg(c.gate_id order by c.lane_id) from closed as c), '{}')
    into pass_kinds.jobs, pass_kinds.places, pass_kinds.barred, pass_kinds.gates;
    if pass_kinds.gates <> '{}' then
        perform jobq_private.pull_back(
            g.gate_id, jobq_private.spacing(k.rate_limit, k.rate_period),
            coalesce(k.rate_burst, 1), pass_kinds.now
        )
        from jobq_private.gate as g
        join jobq_private.kind as k on k.kind = g.kind
        where g.gate_id = any (pass_kinds.gates) and k.rate_limit is not null;
    end if;
end
$$;

revoke all on function jobq_private.pass_kinds from public;

comment on function jobq_private.pass_kinds is
'Of jobs in lanes those that the gates of their kinds let pass.';
