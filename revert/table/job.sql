-- Revert jobq:table/job from pg
begin;
drop table jobq_private.idempotency_key, jobq_private.job;
commit;
