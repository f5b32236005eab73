-- Purpose: The questions of jobs that wait for a person, until somebody answers or the time is
-- over.
-- Column name: the name of the question, for answer()
-- Column question: what the job asks
-- Column form: a JSON Schema of the data of an approval; null means any
-- Column asked_by: the worker that asked
-- Column since: when it asked first
-- Column expires_at: until when an answer counts; null means no limit
create or replace view jobq.question as
select
    w.job_id, substr(w.event, 8) as name, j.kind, j.queue, w.question, w.form, w.asked_by, w.since,
    case when w.deadline < w.since + interval '36000 days' then w.deadline end as expires_at
from jobq_private.waiter as w
join jobq_private.job as j on j.job_id = w.job_id
where w.question is not null
and w.deadline > clock_timestamp()
and not exists (
    select from jobq_private.event as e where e.event = w.event and e.job_id = w.job_id
);

grant select on jobq.question to jobq_reader;
