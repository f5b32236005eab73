-- Purpose: once lanes, limits of kinds or workflows are used, claims look for them.
-- Invariant: the row comes with the first that is to be found, in one commit, and stays: a claim
-- that does not see it would not see those either. Two that are first at once leave two rows.
-- Raises: nothing.
create or replace function jobq_private.note_use()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from jobq_private.in_use as u) then
        insert into jobq_private.in_use default values;
    end if;
    return null;
end
$$;

revoke all on function jobq_private.note_use from public;

comment on function jobq_private.note_use is
'Notes that lanes, limits of kinds or workflows are used.';

create or replace trigger in_use_lanes
after insert on jobq_private.lane_call
for each statement execute function jobq_private.note_use();

create or replace trigger in_use_gates
after insert on jobq_private.kind_gate
for each statement execute function jobq_private.note_use();

create or replace trigger in_use_looks
after insert on jobq_private.look
for each statement execute function jobq_private.note_use();
