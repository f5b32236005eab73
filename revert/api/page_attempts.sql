-- Revert jobq:api/page_attempts from pg
begin;
set local role jobq_owner;

drop function if exists jobq.page_attempts;

commit;
