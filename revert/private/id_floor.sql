-- Revert jobq:private/id_floor from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.id_floor;

commit;
