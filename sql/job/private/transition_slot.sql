-- Purpose: copy new transitions into every slot.
create or replace function jobq_private.transition_slot()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into jobq_private.transition_slot (slot, from_state, to_state)
    select n.slot, a.from_state, a.to_state
    from generate_series(0, 1023) as n (slot)
    cross join added as a;
    return null;
end
$$;

create or replace trigger transition_slot
after insert on jobq_private.transition
referencing new table as added
for each statement execute function jobq_private.transition_slot();
