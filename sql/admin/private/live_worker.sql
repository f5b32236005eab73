-- Purpose: the workers that were seen within the last minute.
create or replace view jobq_private.live_worker as
select w.worker, w.queues, w.except_kinds, w.release, w.stuck
from jobq_private.worker as w
where w.seen_at > now() - interval '1 min';
