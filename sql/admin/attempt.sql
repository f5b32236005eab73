-- Purpose: All attempts. state is the job's state after the attempt, or running.
-- Invariant: each attempt is in one of three tables, so it appears once.
-- Column state: the outcome: succeeded, retrying, dead, cancelled, queued (returned), or running.
-- Column result: the result of a succeeded attempt.
create or replace view jobq.attempt as
select
    t.job_id, t.attempt, t.state, t.started_at, t.finished_at,
    t.finished_at - t.started_at as duration, t.worker, t.error_code, t.error,
    null::jsonb as result, t.error_details
from jobq_private.attempt as t
union all
select
    a.job_id, a.attempt, a.state, a.claimed_at, a.finished_at,
    a.finished_at - a.claimed_at, a.worker, null, null, a.result,
    null
from jobq_private.job_archive as a
where a.state = 'succeeded'
union all
select
    j.job_id, j.attempt, j.state, j.claimed_at, null, null, j.worker, null, null, null,
    null
from jobq_private.job as j
where j.state = 'running';

grant select on jobq.attempt to jobq_reader;
