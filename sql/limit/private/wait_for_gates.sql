-- Purpose: lock the gates that a job passes, and its lane.
-- Invariant: waits, in the order of gates; gates that are missing are made. A lane that no claim has
-- opened has no row: then the lock under which claims make it stands for one. Raises: nothing.
create or replace function jobq_private.wait_for_gates(job jobq_private.job)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _making_gates constant integer := jobq_private.lock_class('gating');
    _making_lanes constant integer := jobq_private.lock_class('laning');
    _gates uuid[];
begin
    _gates := array(
        select g.gate_id from jobq_private.job_gates(job) as g
        where g.gate_id is distinct from job.lane_id or g.spacing is not null or g.is_ordered
        or exists (select from jobq_private.gate as e where e.gate_id = g.gate_id)
    );
    perform pg_advisory_xact_lock(_making_gates, n.slot)
    from (
        select distinct jobq_private.lane_slot(u.gate_id) as slot
        from unnest(_gates) as u (gate_id)
        where not exists (select from jobq_private.gate as g where g.gate_id = u.gate_id)
        order by slot
        offset 0
    ) as n;
    insert into jobq_private.gate (gate_id, queue)
    select u.gate_id, job.queue from unnest(_gates) as u (gate_id) order by u.gate_id
    on conflict on constraint gate_pkey do nothing;
    perform from jobq_private.gate as g
    where g.gate_id = any (_gates)
    order by g.gate_id
    for update;
    for _look in 1 .. 2 loop
        perform from jobq_private.lane as l
        where l.lane_id = job.lane_id
        order by l.priority
        for update;
        exit when found or job.lane_id is null;
        perform pg_advisory_xact_lock(_making_lanes, jobq_private.lane_slot(job.lane_id));
    end loop;
end
$$;

revoke all on function jobq_private.wait_for_gates from public;

comment on function jobq_private.wait_for_gates is
'Locks the gates that a job passes, and its lane.';
