-- Purpose: who works, on what, and how many jobs they hold.
-- Invariant: a worker is live when it was seen within the last minute.
-- Column jobs: how many jobs it runs.
-- Column queues: what it claims from.
-- Column except_kinds: the kinds that it has met and has no handler for.
-- Column release: of what it runs, as it says itself; null where it says nothing.
-- Column stuck: how many of its slots are held by handlers that hang.
-- Column started_at: when it was first heard of.
create or replace view jobq.worker as
select
    w.worker, w.queues, w.started_at, w.seen_at,
    w.seen_at > now() - interval '1 min' as is_live,
    (
        select count(*) from jobq_private.job as j
        where j.state = 'running' and j.worker = w.worker
    ) as jobs,
    w.region, w.except_kinds, w.release, w.stuck
from jobq_private.worker as w;

revoke all on jobq.worker from public;
grant select on jobq.worker to jobq_reader;

comment on view jobq.worker is 'Workers, when they were last seen, and how many jobs they hold.';
