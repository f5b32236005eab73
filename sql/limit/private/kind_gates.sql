-- Purpose: the gates of kinds are known to claims.
-- Invariant: kind_gate has a row for each gate with a kind. Raises: nothing.
create or replace function jobq_private.follow_gates()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        insert into jobq_private.kind_gate (gate_id) values (new.gate_id);
    else
        delete from jobq_private.kind_gate as k where k.gate_id = old.gate_id;
    end if;
    return null;
end
$$;

revoke all on function jobq_private.follow_gates from public;

comment on function jobq_private.follow_gates is
'Has claims know of the gates of kinds.';

create or replace trigger kind_gate_birth
after insert on jobq_private.gate
for each row when (new.kind is not null)
execute function jobq_private.follow_gates();

create or replace trigger kind_gate_end
after delete on jobq_private.gate
for each row when (old.kind is not null)
execute function jobq_private.follow_gates();
