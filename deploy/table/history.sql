-- Deploy jobq:table/history to pg
-- What has happened: append-only, partitioned by day, dropped a day at a time. The default
-- partitions take what comes on a day that nobody has made ready.
begin;
set local role jobq_owner;

create table jobq_private.job_archive (
    like jobq_private.job including defaults,
    finished_at timestamptz not null,
    result jsonb,
    constraint job_archive_pkey primary key (job_id, finished_at),
    constraint job_archive_transition_fkey foreign key (previous_state, state)
    references jobq_private.transition (from_state, to_state),
    constraint job_archive_state_check
    check (
        previous_state is not null
        and (
            state not in ('running', 'retrying')
            or previous_state not in ('queued', 'running', 'retrying')
        )
    )
)
partition by range (finished_at);

create index job_archive_state_idx
on jobq_private.job_archive (state, job_id) include (queue)
where state <> 'succeeded';

create index job_archive_finished_at_idx
on jobq_private.job_archive using brin (finished_at);

create index job_archive_schedule_idx
on jobq_private.job_archive (schedule_id, slot_at) where schedule_id is not null;

comment on table jobq_private.job_archive is 'Finished jobs, a partition for each day.';

create table jobq_private.attempt (
    job_id uuid not null,
    attempt integer not null,
    state text collate "C" not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    worker text,
    error_code text,
    error text,
    error_details jsonb,
    region text not null default 'default',
    constraint attempt_pkey primary key (job_id, attempt, finished_at)
)
partition by range (finished_at);

comment on table jobq_private.attempt is 'Every attempt that did not succeed, with the state it left the job in.';

create sequence jobq_private.job_log_sequence;

create table jobq_private.job_log (
    job_id uuid not null,
    attempt integer not null,
    logged_at timestamptz not null default clock_timestamp(),
    sequence bigint not null default nextval('jobq_private.job_log_sequence'),
    level text not null,
    message text not null,
    region text not null default 'default',
    constraint job_log_level_check check (level in ('DEBUG', 'INFO', 'WARN', 'ERROR')),
    constraint job_log_message_check check (length(message) <= 8192)
)
partition by range (logged_at);

create index job_log_job_id_idx on jobq_private.job_log (job_id, sequence);

comment on table jobq_private.job_log is 'Lines that handlers have logged for a job.';

create table jobq_private.job_archive_default partition of jobq_private.job_archive default;
create table jobq_private.attempt_default partition of jobq_private.attempt default;
create table jobq_private.job_log_default partition of jobq_private.job_log default;

commit;
