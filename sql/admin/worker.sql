-- Purpose: Workers, when they were last seen, and how many jobs they run.
-- Invariant: a worker is live if it was seen within the last minute.
-- Column jobs: how many jobs it runs.
-- Column queues: the queues from which it claims.
-- Column except_kinds: kinds that it has seen and has no handler for.
-- Column release: release of its program; null if not given.
-- Column stuck: how many of its slots are occupied by hanging handlers.
-- Column started_at: when it was first seen.
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

grant select on jobq.worker to jobq_reader;
