-- Purpose: what is added to the transitions is legal in every lane.
-- Invariant: the foreign key of the lanes takes along what is changed or deleted.
-- Raises: nothing.
create or replace function jobq_private.fill_lanes()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.transition_lane (lane, from_state, to_state)
    select n.lane, a.from_state, a.to_state
    from generate_series(0, 1023) as n (lane)
    cross join added as a;
    return null;
end
$$;

revoke all on function jobq_private.fill_lanes from public;

comment on function jobq_private.fill_lanes is
'Copies what is added to the transitions into every lane.';

create or replace trigger transition_lane
after insert on jobq_private.transition
referencing new table as added
for each statement execute function jobq_private.fill_lanes();
