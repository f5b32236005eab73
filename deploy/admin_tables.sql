-- Deploy jobq:admin_tables to pg
-- The queue's own history, for charts: a row for each bucket, queue and kind, of buckets of
-- 1, 10 and 60 minutes. Bounded: few pairs a bucket, and each width is kept for a time.
begin;
set local role jobq_owner;

create table jobq_private.history (
    minutes smallint not null,
    bucket timestamptz not null,
    queue text not null,
    kind text not null,
    enqueued bigint not null default 0,
    succeeded bigint not null default 0,
    failed bigint not null default 0,
    dead bigint not null default 0,
    cancelled bigint not null default 0,
    constraint history_pkey primary key (minutes, bucket, queue, kind),
    constraint history_minutes_check check (minutes in (1, 10, 60))
);

comment on table jobq_private.history is 'How many jobs were made and ended in each stretch of time.';

-- counts[n] is how many jobs took from 2^((n-1)/2) to 2^(n/2) milliseconds.
create table jobq_private.latency (
    minutes smallint not null,
    bucket timestamptz not null,
    counts bigint[] not null,
    constraint latency_pkey primary key (minutes, bucket),
    constraint latency_minutes_check check (minutes in (1, 10, 60))
);

comment on table jobq_private.latency is 'How long jobs took that ended in each stretch of time.';

create table jobq_private.history_mark (
    is_singleton boolean not null default true,
    rolled_to timestamptz not null default date_trunc('minute', now()),
    constraint history_mark_pkey primary key (is_singleton),
    constraint history_mark_is_singleton_check check (is_singleton)
);

comment on table jobq_private.history_mark is 'Until when the history is rolled up.';

insert into jobq_private.history_mark default values;

create table jobq_private.total (
    queue text not null,
    enqueued bigint not null,
    succeeded bigint not null,
    failed bigint not null,
    dead bigint not null,
    cancelled bigint not null,
    constraint total_pkey primary key (queue)
);

comment on table jobq_private.total is 'How many jobs were made and ended in each queue since the history began; failed are attempts.';

create table jobq_private.waiting_count (
    queue text not null,
    queued bigint not null,
    scheduled bigint not null,
    retrying bigint not null,
    counted_at timestamptz not null,
    took interval not null,
    constraint waiting_count_pkey primary key (queue)
);

comment on table jobq_private.waiting_count is 'How many jobs waited in each long queue when they were counted last.';

-- One row more has the name release, and the sum of the script that installs it.
create table jobq_private.deployed_object (
    object text not null,
    sum text not null,
    constraint deployed_object_pkey primary key (object)
);

comment on table jobq_private.deployed_object is 'What the schemas consisted of after the last jobq deploy.';

create type jobq_private.finding as (
    subject text,
    is_ok boolean,
    finding text,
    remedy text
);

comment on type jobq_private.finding is 'What a function PART_health() found, for the check of that subject.';

insert into jobq_private.maintenance_task (position, task, function, max_rows)
values
(30, 'healed', 'heal_jobs', 1000),
(90, 'rolled_up', 'roll_up', null);

commit;
