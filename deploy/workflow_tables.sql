-- Deploy jobq:workflow_tables to pg
-- Steps, events, dependencies and batches. Jobs without them neither read nor write these
-- tables, and no table here refers to those of jobs.
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

comment on table jobq_private.step is 'The saved results of steps, which later attempts do not run again.';

-- What attempts have written for readers who follow a job. n counts from 1 in each generation, which
-- is the attempt that wrote the chunk. Kept as long as the job.
create table jobq_private.stream_chunk (
    job_id uuid not null,
    stream text collate "C" not null,
    generation integer not null,
    n integer not null,
    chunk jsonb not null,
    appended_at timestamptz not null default clock_timestamp(),
    constraint stream_chunk_pkey primary key (job_id, stream, generation, n),
    constraint stream_chunk_n_check check (n >= 1)
);

comment on table jobq_private.stream_chunk is 'The chunks of streams, in the order of (generation, n).';

-- A signal is an event for one job; other events have a job_id of zeros.
create table jobq_private.event (
    event text collate "C" not null,
    job_id uuid not null default '00000000-0000-0000-0000-000000000000',
    payload jsonb not null,
    emitted_at timestamptz not null default now(),
    constraint event_pkey primary key (event, job_id)
);

create index event_emitted_at_idx on jobq_private.event (emitted_at);

comment on table jobq_private.event is 'Emitted events, kept for jobs that wait for them later.';

create table jobq_private.subscription (
    event text collate "C" not null,
    kind text not null,
    queue text,
    created_at timestamptz not null default now(),
    constraint subscription_pkey primary key (event, kind),
    constraint "event must have 1 to 256 characters" check (length(event) between 1 and 256),
    constraint "kind must have 1 to 128 characters" check (length(kind) between 1 and 128),
    constraint "queue must have 1 to 128 characters, and must not end in *"
    check (length(queue) between 1 and 128 and right(queue, 1) <> '*')
);

comment on table jobq_private.subscription is 'The kinds of which a job is made for each event that is published.';

create table jobq_private.waiter (
    job_id uuid not null,
    event text collate "C" not null,
    deadline timestamptz not null,
    since timestamptz not null default now(),
    needs_all boolean not null default false,
    question text,
    form jsonb,
    asked_by text,
    constraint waiter_pkey primary key (job_id, event)
);

create index waiter_event_idx on jobq_private.waiter (event, job_id);

create index waiter_since_idx on jobq_private.waiter (since);

create index waiter_question_idx on jobq_private.waiter (since)
where question is not null;

comment on column jobq_private.waiter.needs_all is
'Whether the job waits for all of its events with this mark, the ends of called jobs, not for the first.';

comment on column jobq_private.waiter.question is
'What the job asks a person; null if it waits for another event.';

comment on table jobq_private.waiter is 'The jobs that wait for events; each is queued, and due at its deadline.';

-- A job calls its children, and waits for them without being blocked: such an edge is never open.
-- With 'call', the child is cancelled with its caller; with 'detach' it is not.
-- Closed edges stay, to be shown.
create table jobq_private.edge (
    child uuid not null,
    parent uuid not null,
    after_failure text collate "C" not null,
    is_open boolean not null default true,
    constraint edge_pkey primary key (child, parent),
    constraint edge_child_check check (child <> parent),
    constraint edge_after_failure_check check (
        after_failure in ('cancel', 'wait', 'run', 'call', 'detach')
    )
)
-- No index has is_open, and pages keep room, so that an edge is closed in place (HOT).
with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

create index edge_parent_idx on jobq_private.edge (parent, child);

create index edge_called_idx on jobq_private.edge (parent) where after_failure in ('call', 'detach');

comment on table jobq_private.edge is 'Jobs that wait for jobs; a child with an open edge is blocked.';

-- The queue of resolve(): parents that have ended, children that have begun to wait, batches
-- of which a member has ended, events that met a wait in another open transaction, called jobs
-- that have ended, callers that were cancelled. Nearly always empty. A row is about the edges to ids above
-- `beyond`; has_passed: some of the edges below must be tried again.
create table jobq_private.pending (
    pending_id bigint generated always as identity,
    about text collate "C" not null,
    id uuid not null,
    event text collate "C",
    beyond uuid not null default '00000000-0000-0000-0000-000000000000',
    has_passed boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    due_at timestamptz not null default '-infinity',
    constraint pending_pkey primary key (pending_id),
    constraint pending_about_check check (
        about in ('parent', 'child', 'batch', 'event', 'call', 'caller')
    ),
    constraint pending_event_check check ((event is not null) = (about = 'event'))
)
with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

comment on table jobq_private.pending is 'The queue of resolve(): jobs, batches and events to look at.';

create type jobq_private.pending_edge as (
    pending_id bigint, about text, child uuid, parent uuid, after_failure text,
    ended_as text, outcome text, is_held boolean
);

comment on type jobq_private.pending_edge is 'An open edge of a row of pending, with the results of end_edges().';

create type jobq_private.child_call as (
    n bigint, job_id uuid, attempt integer, name text, document jsonb, child_id uuid, is_new boolean
);

comment on type jobq_private.child_call is
'A job that the n-th call of call_many() calls; child_id is its id, and is_new whether it was just enqueued.';

create table jobq_private.node (
    job_id uuid not null,
    graph_id uuid not null,
    name text not null,
    constraint node_pkey primary key (job_id),
    constraint node_name_key unique (graph_id, name)
);

comment on table jobq_private.node is 'The jobs of graphs, by their names in the graph.';

create type jobq_private.arrow as (child integer, parent integer);

comment on type jobq_private.arrow is 'An edge between jobs of a graph, by their places.';

create table jobq_private.batch (
    batch_id uuid not null,
    on_success uuid,
    on_end uuid,
    on_first_death uuid,
    queue text not null,
    has_lost boolean not null default false,
    opened_at timestamptz not null default now(),
    sealed_at timestamptz,
    ended_at timestamptz,
    constraint batch_pkey primary key (batch_id)
)
with (fillfactor = 70);

create index batch_opened_at_idx on jobq_private.batch (opened_at);

create index batch_on_success_idx on jobq_private.batch (on_success)
where on_success is not null;

create index batch_on_end_idx on jobq_private.batch (on_end)
where on_end is not null;

create index batch_on_first_death_idx on jobq_private.batch (on_first_death)
where on_first_death is not null;

comment on column jobq_private.batch.has_lost is
'Whether a member was deleted that had not succeeded.';

comment on table jobq_private.batch is 'Batches, and the jobs that wait for their end.';

insert into jobq_private.maintenance_task (position, task, function, max_rows, full_at, due)
values
(40, 'resolved', 'resolve', 1000, 1, 'pending_due'),
(80, 'pruned_workflows', 'prune_workflows', 1000, 1000, null);

commit;
