-- Deploy jobq:workflow_tables to pg
-- What a job has done so far, and what it waits for. None of it is touched by a job that
-- has no steps: nothing here refers to the tables of jobs.
begin;
set local role jobq_owner;

create table jobq_private.step (
    job_id uuid not null,
    name text collate "C" not null,
    value jsonb not null,
    attempt integer not null,
    saved_at timestamptz not null default clock_timestamp(),
    constraint step_pkey primary key (job_id, name)
);

comment on table jobq_private.step is 'What the steps of jobs have come to; an attempt that comes later does not run them again.';

-- A signal is an event for one job; the job_id of all others is zero.
create table jobq_private.event (
    event text collate "C" not null,
    job_id uuid not null default '00000000-0000-0000-0000-000000000000',
    payload jsonb not null,
    emitted_at timestamptz not null default now(),
    constraint event_pkey primary key (event, job_id)
);

create index event_emitted_at_idx on jobq_private.event (emitted_at);

comment on table jobq_private.event is 'What was emitted, kept for those that come to wait for it.';

create table jobq_private.waiter (
    job_id uuid not null,
    event text collate "C" not null,
    deadline timestamptz not null,
    since timestamptz not null default now(),
    constraint waiter_pkey primary key (job_id, event)
);

create index waiter_event_idx on jobq_private.waiter (event, job_id);

create index waiter_since_idx on jobq_private.waiter (since);

comment on table jobq_private.waiter is 'Which jobs wait for which events; each is queued, and due at its deadline.';

-- What a transaction with one snapshot has emitted, or waits for: it cannot see what others
-- have done since.
create table jobq_private.late_event (
    late_event_id bigint generated always as identity,
    event text collate "C" not null,
    job_id uuid not null,
    constraint late_event_pkey primary key (late_event_id)
);

comment on table jobq_private.late_event is 'Events and waits that maintain() has yet to bring together.';

commit;
