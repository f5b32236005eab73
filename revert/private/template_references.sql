-- Revert jobq:private/template_references from pg
begin;
set local role jobq_owner;

drop function if exists jobq_private.template_references;

commit;
