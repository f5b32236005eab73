-- Purpose: give slots to running jobs without one, if limits may count them; then
-- delete the record that limits have changed.
-- Invariant: takes the highest slots of a key; claims take the lowest, so the two do
-- not conflict. Skips locked rows. maintain() runs in one session at a time.
create or replace function jobq_private.number_running()
returns void language plpgsql as $$
begin
    with found as materialized (
        select j.job_id, j.queue, j.key_id
        from jobq_private.job as j
        where j.job_id = any(array(select u.job_id from jobq_private.running_without_slot() as u))
        for no key update skip locked
    )
    update jobq_private.job as j
    set slot = n.slot
    from (
        select f.job_id, case when f.key_id is null then 1 else coalesce((
            select min(o.slot) from jobq_private.job as o
            where o.queue = f.queue and o.key_id = f.key_id and o.slot > 16384
        ), 32768) - row_number() over (partition by f.queue, f.key_id) end as slot
        from found as f
    ) as n
    where j.job_id = n.job_id and j.state = 'running' and j.slot is null;
    delete from jobq_private.limit_change as c
    where c.change_id > 1
    and c.changed_at < clock_timestamp() - interval '10 s'
    -- no transaction is open that has not seen the change
    and age(c.xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid)
    and not exists (select from jobq_private.running_without_slot());
end
$$;
