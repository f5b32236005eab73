-- Purpose: the lowest free slots of a key, as many as are wanted; null without a
-- number.
-- Invariant: counts what runs with the snapshot of the statement: whatever has ended,
-- in whatever way, is free. One row. Inlined, so no SET clause; offset 0, so that it is
-- evaluated once.
create or replace function jobq_private.free_slots(queue text, key_id uuid, wanted integer)
returns setof smallint[]
language sql
stable
parallel safe
rows 1
as $$
    select case
        when wanted is null then null
        when t.used = '{}' and wanted = 1 then '{1}'::smallint[]
        else array(
            select n::smallint
            from pg_catalog.generate_series(
                1, least(32767, pg_catalog.cardinality(t.used) + wanted)
            ) as n
            where n <> all(t.used)
            limit wanted
        )
    end
    from (
        select array(
            select j.slot
            from jobq_private.job as j
            where wanted > 0
            and j.queue = free_slots.queue
            and j.key_id = free_slots.key_id
            and j.slot is not null
        ) as used
        offset 0
    ) as t
    offset 0
$$;
