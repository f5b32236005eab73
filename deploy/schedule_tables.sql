-- Deploy jobq:schedule_tables to pg
begin;
set local role jobq_owner;

-- A parsed cron expression: sets of numbers as bits, so that the search for the next firing
-- is a few shifts. jobq_private.cron_parse makes one; years alone may be null.
create type jobq_private.cron as (
    -- bit n: the second, minute, hour or month n
    seconds bigint,
    minutes bigint,
    hours bigint,
    months bigint,
    -- bit n: day n of the month (15), and the weekday nearest to it (15W)
    days bigint,
    near_days bigint,
    -- bit 31 - n: the n-th day before the last of the month (L, L-3), and its W
    last_days bigint,
    near_last_days bigint,
    -- bit 7 * (n - 1) + w: the n-th weekday w of the month, Sunday being 0; MON sets five
    weekdays bigint,
    -- bit w: the last weekday w of the month
    last_weekdays bigint,
    -- null for every year
    years integer[],
    -- both day fields are restricted, so that a day which either names will do
    is_either_day boolean,
    time_zone text,
    -- what happens when clocks change: whether local times that do not exist fire when the
    -- clocks are set forward, and whether local times that come twice fire twice
    runs_in_gap boolean,
    repeats_in_fold boolean
);

comment on type jobq_private.cron is
'A parsed cron expression with its time zone, for jobq_private.cron_next.';

-- A row for each version. The next slot is stored, so that a restart loses none.
-- last_tick_at only grows, and next_run_at is later, so that no slot fires twice, even after
-- its job was deleted. A schedule that cannot fire keeps its slot until retry_at.
create table jobq_private.schedule (
    schedule_id uuid not null,
    name text not null,
    version integer not null default 1,
    previous_version_id uuid,
    replaced_by_id uuid,
    status text collate "C" not null default 'active',
    kind text not null,
    queue text,
    payload jsonb not null,
    metadata jsonb not null,
    graph jsonb,
    priority integer,
    max_attempts integer,
    timeout interval,
    cron text,
    parsed jobq_private.cron,
    every interval,
    from_completion boolean not null,
    time_zone text not null,
    gap text not null,
    fold text not null,
    missed text not null,
    catch_up interval,
    dedup text not null,
    dedup_key text,
    concurrency_key text,
    jitter interval not null,
    starts_at timestamptz,
    ends_at timestamptz,
    next_run_at timestamptz,
    awaited_job_id uuid,
    last_tick_at timestamptz,
    retry_at timestamptz,
    failure text,
    paused_at timestamptz,
    pause_reason text,
    login text not null default session_user,
    region text not null default 'default',
    created_at timestamptz not null default now(),
    retired_at timestamptz,
    constraint schedule_pkey primary key (schedule_id),
    constraint schedule_version_key unique (name, version),
    constraint schedule_previous_version_id_fkey foreign key (previous_version_id)
    references jobq_private.schedule (schedule_id),
    constraint schedule_replaced_by_id_fkey foreign key (replaced_by_id)
    references jobq_private.schedule (schedule_id),
    constraint schedule_status_check check (status in ('active', 'paused', 'retired')),
    constraint schedule_paused_at_check
    check ((status = 'paused') = (paused_at is not null) or status = 'retired'),
    constraint schedule_retired_at_check
    check (
        (status = 'retired') = (retired_at is not null)
        and (status <> 'retired' or num_nonnulls(next_run_at, awaited_job_id) = 0)
    ),
    constraint schedule_every_check
    check (
        num_nonnulls(cron, every) = 1
        and (cron is null) = (parsed is null)
        and (every is not null or not from_completion)
    ),
    constraint schedule_missed_check check (missed in ('all', 'latest', 'none')),
    constraint schedule_dedup_check
    check (
        dedup in ('skip', 'enqueue', 'replace')
        and (dedup = 'enqueue' or dedup_key is not null)
    ),
    constraint schedule_next_run_at_check
    check (next_run_at > last_tick_at and next_run_at < coalesce(ends_at, 'infinity')),
    constraint schedule_awaited_job_id_check
    check (awaited_job_id is null or (from_completion and next_run_at is null))
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

comment on table jobq_private.schedule is 'Recurring jobs, a row for each version.';

create unique index schedule_name_idx on jobq_private.schedule (name)
where status <> 'retired';

create index schedule_due_idx on jobq_private.schedule (greatest(next_run_at, retry_at))
where status = 'active' and next_run_at is not null;

create index schedule_retry_idx on jobq_private.schedule (retry_at)
where retry_at is not null;

create index schedule_awaited_idx on jobq_private.schedule (awaited_job_id)
where status = 'active' and awaited_job_id is not null;

insert into jobq_private.maintenance_task (position, task, function, max_rows, due)
values (50, 'ticked', 'tick_schedules', 1000, 'tick_due');

commit;
