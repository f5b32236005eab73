-- Purpose: have defaults() say what setting says, whoever changes it; maintain() does where triggers
-- were disabled.
-- Invariant: in the same transaction; always, so also for a row that a subscription brings.
-- Raises: nothing.
create or replace function jobq_private.setting_changed()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.write_constants();
    return null;
end
$$;

revoke all on function jobq_private.setting_changed from public;

comment on function jobq_private.setting_changed is
'Has defaults() say what the table of global defaults says.';

create or replace trigger setting_change
after insert or update on jobq_private.setting
for each row execute function jobq_private.setting_changed();

alter table jobq_private.setting enable always trigger setting_change;
