-- Deploy jobq:error_tables to pg
-- Every error that jobq raises, once: SQLSTATE, symbolic code, HTTP status and prose.
begin;
set local role jobq_owner;

create table jobq_private.error (
    code text not null,
    sqlstate text not null,
    http_status smallint not null,
    message text not null,
    hint text not null,
    constraint error_pkey primary key (code),
    constraint error_sqlstate_check check (sqlstate ~ '^(JQ[0-9]{3}|22[0-9A-Z]{3})$'),
    constraint error_http_status_check check (http_status between 400 and 599)
);

comment on table jobq_private.error is 'Every error that jobq raises, with its SQLSTATE, its symbolic code and its HTTP status.';

insert into jobq_private.error (code, sqlstate, http_status, message, hint)
values
('JOB_NOT_FOUND', 'JQ001', 404, 'job not found',
 'check the job id; finished jobs are dropped when their retention ends'),
('ILLEGAL_STATE', 'JQ002', 409, 'the job cannot change in this way from its present state',
 'read the state with: select state from jobq.job where job_id = ...'),
('IMMUTABLE', 'JQ002', 409, 'this part of a job never changes',
 'cancel the job and enqueue another'),
('LEASE_LOST', 'JQ003', 409, 'this attempt no longer holds the job',
 'drop the work: another attempt has the job, or it has ended'),
('DEDUP_CONFLICT', 'JQ004', 409, 'another live job holds this dedup key',
 'cancel the live job or wait until it has ended'),
('PAYLOAD_TOO_LARGE', 'JQ005', 413, 'the payload is too large',
 'store the data elsewhere and enqueue a reference to it, or raise max_payload_bytes'),
('PAYLOAD_TOO_DEEP', 'JQ006', 422, 'the payload is nested too deeply',
 'flatten the payload, or raise max_payload_depth'),
('PAYLOAD_INVALID', 'JQ006', 422, 'the payload does not fit its kind',
 'mend the field that the detail names'),
('SCHEMA_INVALID', 'JQ006', 422, 'the payload schema is not usable',
 'use the keywords that the detail names'),
('QUEUE_NOT_FOUND', 'JQ007', 404, 'queue not found',
 'declare it with: select jobq.put_queue(...)'),
('KIND_NOT_FOUND', 'JQ007', 404, 'kind not found',
 'declare it with: select jobq.put_kind(...)'),
('API_KEY_NOT_FOUND', 'JQ007', 404, 'API key not found',
 'list the keys with: select * from jobq.list_api_keys()'),
('API_KEY_EXISTS', 'JQ004', 409, 'an API key of this name exists',
 'choose another name; the name of a revoked key is not used again'),
('SCHEDULE_NOT_FOUND', 'JQ007', 404, 'schedule not found',
 'list the schedules with: select * from jobq.list_schedules()'),
('SCHEDULE_RETIRED', 'JQ002', 409, 'this version of the schedule is retired',
 'give the name of the schedule, or declare it again with: select jobq.create_schedule(...)'),
('SCHEDULE_IMMUTABLE', 'JQ002', 409, 'a version of a schedule never changes',
 'make a new version with: select jobq.update_schedule(...)'),
('PAYLOAD_SPEC_NOT_FOUND', 'JQ007', 404, 'payload spec not found',
 'declare it with: select jobq.put_payload_spec(...)'),
('CONFIG_NOT_FOUND', 'JQ007', 404, 'config not found',
 'declare it with: select jobq.put_config(...)'),
('SECRET_NOT_FOUND', 'JQ007', 404, 'secret not found',
 'store it with: jobq secrets put'),
('ENDPOINT_NOT_FOUND', 'JQ007', 404, 'endpoint not found',
 'declare it with: select jobq.put_endpoint(...)'),
('INVALID_PAYLOAD_SPEC_REF', 'JQ007', 422, 'the endpoint names an unknown payload spec',
 'declare the payload spec first, with jobq.put_payload_spec()'),
('INVALID_CONFIG_REF', 'JQ007', 422, 'the endpoint names an unknown config',
 'declare the config first, with jobq.put_config()'),
('TEMPLATE_RESOLUTION_FAILED', 'JQ007', 422, 'a template refers to something that is not there',
 'write {{config.key}}, {{secret.name}} or {{input.path}}, and declare the key or secret first'),
('DEFINITION_EXISTS', 'JQ004', 409, 'a definition of this name exists',
 'update it, or choose another name'),
('HAS_DEPENDENTS', 'JQ008', 409, 'something still depends on this',
 'end or delete what the detail names first'),
('INVALID_CRON', 'JQ009', 422, 'invalid cron expression',
 'write [second] minute hour day-of-month month day-of-week [year] or @daily; a list is 1,15, a range 1-5, a step within the field */10; for any other period use an interval'),
('CRON_NEVER_FIRES', 'JQ009', 422, 'the cron expression can never fire',
 'name a day that these months have; L is the last day of each month'),
('INVALID_TIME_ZONE', 'JQ009', 422, 'unknown time zone',
 'select name from pg_timezone_names lists the zones; name a place, such as Europe/Berlin'),
('QUEUE_FULL', 'JQ010', 429, 'the queue is full',
 'enqueue later, or raise max_depth of the queue'),
('NULL_ARGUMENT', '22004', 400, 'an argument that is needed is null',
 'give the argument that the detail names'),
('INVALID_ARGUMENT', '22023', 400, 'an argument has a value that it may not have',
 'the detail names the argument and what it may hold');

commit;
