-- Revert jobq:private/schedule_document from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.schedule_document;

commit;
