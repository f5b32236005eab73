-- Purpose: once lanes, limits of kinds or workflows are used, claims look for them.
-- Invariant: the row comes with the first that is to be found, in one commit, and stays: a claim
-- that does not see it would not see those either. Two that are first at once leave two rows.
-- Raises: nothing.
create or replace function jobq_private.note_use()
returns trigger
language plpgsql
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

create or replace trigger in_use_lanes
after insert on jobq_private.lane_call
for each statement execute function jobq_private.note_use();

create or replace trigger in_use_limits
after insert on jobq_private.known_limit
for each statement execute function jobq_private.note_use();

create or replace trigger in_use_pending
after insert on jobq_private.pending
for each statement execute function jobq_private.note_use();
