-- Revert jobq:api/claim_job from pg
begin;
set local role jobq_owner;

drop function if exists jobq.claim_job;

commit;
