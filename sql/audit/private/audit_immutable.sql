-- Purpose: refuse changes of audit rows. The owner could drop the trigger, but nobody logs in as
-- the owner. Raises: JQ002.
create or replace function jobq_private.audit_immutable()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.raise_error('IMMUTABLE', 'audit rows cannot be changed');
    return null;
end
$$;

create or replace trigger audit_immutable
before update or delete or truncate on jobq_private.audit
for each statement execute function jobq_private.audit_immutable();
