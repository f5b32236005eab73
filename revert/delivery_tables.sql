-- Revert jobq:delivery_tables from pg
begin;

drop table jobq_private.definition_version, jobq_private.pinned_definition,
    jobq_private.endpoint_secret, jobq_private.parked_job,
    jobq_private.endpoint, jobq_private.secret, jobq_private.config,
    jobq_private.payload_spec, jobq_private.spec_field;

commit;
