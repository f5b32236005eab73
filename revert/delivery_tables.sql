-- Revert jobq:delivery_tables from pg
begin;

drop table jobq_private.definition_version, jobq_private.endpoint_definition,
    jobq_private.parked_job, jobq_private.endpoint, jobq_private.definition,
    jobq_private.spec_field;

commit;
