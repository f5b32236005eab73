-- Deploy jobq:audit_tables to pg
-- What operators have done. Append-only: a trigger refuses everything else.
begin;
set local role jobq_owner;

create table jobq_private.audit (
    audit_id bigint generated always as identity,
    acted_at timestamptz not null default clock_timestamp(),
    actor text not null default session_user,
    application text not null default current_setting('application_name'),
    action text not null,
    subject text not null,
    reason text,
    acting_for text default left(nullif(current_setting('jobq.acting_for', true), ''), 256),
    constraint audit_pkey primary key (audit_id)
);

comment on table jobq_private.audit is 'What was done to jobs, queues, kinds, schedules, grants, keys and secrets; append-only.';

commit;
