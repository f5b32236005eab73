-- Deploy jobq:table/worker to pg
-- Who is working, and the stub of regions.
begin;
set local role jobq_owner;

create table jobq_private.worker (
    worker text not null,
    queues text[] not null,
    started_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    region text not null default 'default',
    login text not null default session_user,
    constraint worker_pkey primary key (worker)
)
with (fillfactor = 50);

comment on table jobq_private.worker is 'Workers and their last heartbeat. Leases never depend on it.';

create table jobq_private.region_status (
    region text not null,
    is_alive boolean not null default true,
    failed_at timestamptz,
    adopted_by text,
    updated_at timestamptz not null default now(),
    constraint region_status_pkey primary key (region)
);

comment on table jobq_private.region_status is 'Regions; there is one, and nothing fails over yet.';

insert into jobq_private.region_status (region) values ('default');

commit;
