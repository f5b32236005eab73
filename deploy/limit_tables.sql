-- Deploy jobq:limit_tables to pg
begin;
set local role jobq_owner;

-- A lane is a queue and a concurrency key. It has a row for each priority in which work may
-- be had from it, whose lock is the right to claim there; no row says that none waits.
create table jobq_private.lane (
    lane_id uuid not null,
    priority smallint not null,
    queue text not null,
    concurrency_key text not null,
    state text collate "C" not null default 'open',
    open_at timestamptz not null default '-infinity',
    constraint lane_pkey primary key (lane_id, priority),
    constraint lane_state_check check (state in ('open', 'full', 'later'))
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.lane is 'Lanes with work: open; full until a job of theirs ends; or closed until a time. Who finds a lane full or empty closes it.';

create index lane_open_idx on jobq_private.lane (queue, priority, lane_id)
where state = 'open';

create index lane_open_at_idx on jobq_private.lane (queue, open_at)
where state <> 'full';

-- What asks for a lane to be opened. Rows are only added and taken away, so that no producer
-- waits for another.
create table jobq_private.lane_call (
    queue text not null,
    lane_id uuid not null,
    concurrency_key text,
    priority smallint,
    call_id bigint generated always as identity,
    constraint lane_call_pkey primary key (queue, call_id)
)
with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.lane_call is 'Calls to open a lane: there is work of a priority, or (null) room.';

-- What single keys may, in place of what their queue says for each key.
create table jobq_private.key_limit (
    queue text not null,
    concurrency_key text not null,
    max_running integer not null,
    updated_at timestamptz not null default now(),
    constraint key_limit_pkey primary key (queue, concurrency_key),
    constraint key_limit_queue_check check (length(queue) between 1 and 128),
    constraint key_limit_concurrency_key_check
    check (octet_length(concurrency_key) between 1 and 1024),
    constraint key_limit_max_running_check check (max_running between 1 and 32767)
);

comment on table jobq_private.key_limit is 'Limits of single keys.';

create type jobq_private.lane_batch as (
    jobs tid[],
    places smallint[],
    idle jobq_private.lane[]
);

comment on type jobq_private.lane_batch is 'What a claim takes from lanes, and the lanes that had nothing.';

commit;
