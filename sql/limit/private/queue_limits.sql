-- Purpose: a change of a queue's limits holds at once for its lanes.
-- Invariant: fires for a change alone, also by raw SQL. Raises: nothing.
create or replace function jobq_private.follow_limits()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.limits_changed(coalesce(new.queue, old.queue));
    return null;
end
$$;

create or replace trigger queue_limits
after update on jobq_private.queue
for each row
when (
    (
        new.max_running, new.rate_limit, new.rate_period, new.rate_burst,
        new.key_max_running, new.key_rate_limit, new.key_rate_period,
        new.key_rate_burst, new.ordered, new.on_dead, new.budget,
        new.key_budget
    ) is distinct from (
        old.max_running, old.rate_limit, old.rate_period, old.rate_burst,
        old.key_max_running, old.key_rate_limit, old.key_rate_period,
        old.key_rate_burst, old.ordered, old.on_dead, old.budget,
        old.key_budget
    )
)
execute function jobq_private.follow_limits();

create or replace trigger queue_birth_limits
after insert on jobq_private.queue
for each row
when (num_nonnulls(
    new.max_running, new.rate_limit, new.key_max_running, new.key_rate_limit, new.ordered,
    new.budget, new.key_budget
) > 0)
execute function jobq_private.follow_limits();

create or replace trigger queue_end_limits
after delete on jobq_private.queue
for each row
when (num_nonnulls(
    old.max_running, old.rate_limit, old.key_max_running, old.key_rate_limit, old.ordered,
    old.budget, old.key_budget
) > 0)
execute function jobq_private.follow_limits();

create or replace trigger key_limits
after insert or update or delete on jobq_private.key_limit
for each row execute function jobq_private.follow_limits();
