-- Purpose: a change of a queue's limits holds at once for its lanes.
-- Invariant: fires for a change alone, also by raw SQL. Raises: nothing.
create or replace function jobq_private.follow_limits()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.limits_changed(coalesce(new.queue, old.queue));
    return null;
end
$$;

revoke all on function jobq_private.follow_limits from public;

comment on function jobq_private.follow_limits is
'Has a queue''s lanes follow a change of its limits.';

create or replace trigger queue_limits
after update on jobq_private.queue
for each row when (new.key_max_running is distinct from old.key_max_running)
execute function jobq_private.follow_limits();

create or replace trigger queue_birth_limits
after insert on jobq_private.queue
for each row when (new.key_max_running is not null)
execute function jobq_private.follow_limits();

create or replace trigger queue_end_limits
after delete on jobq_private.queue
for each row when (old.key_max_running is not null)
execute function jobq_private.follow_limits();

create or replace trigger key_limits
after insert or update or delete on jobq_private.key_limit
for each row execute function jobq_private.follow_limits();
