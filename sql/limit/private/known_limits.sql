-- Purpose: the limits of kinds are known to claims.
-- Invariant: known_limit has a row for each limit with a kind. Raises: nothing.
create or replace function jobq_private.follow_known_limits()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        insert into jobq_private.known_limit (limit_id) values (new.limit_id);
    else
        delete from jobq_private.known_limit as k where k.limit_id = old.limit_id;
    end if;
    return null;
end
$$;

create or replace trigger known_limit_birth
after insert on jobq_private.limit_state
for each row when (new.kind is not null)
execute function jobq_private.follow_known_limits();

create or replace trigger known_limit_end
after delete on jobq_private.limit_state
for each row when (old.kind is not null)
execute function jobq_private.follow_known_limits();
