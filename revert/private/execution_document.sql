-- Revert jobq:private/execution_document from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.execution_document;

commit;
