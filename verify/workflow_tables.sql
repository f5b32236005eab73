-- Verify jobq:workflow_tables on pg
begin;

select job_id, name, value, attempt from jobq_private.step where false;
select event, job_id, payload, emitted_at from jobq_private.event where false;
select job_id, event, deadline, question, form, asked_by from jobq_private.waiter where false;
select job_id, stream, generation, n, chunk, appended_at from jobq_private.stream_chunk where false;
select event, kind from jobq_private.subscription where false;
select child, parent, after_failure, is_open from jobq_private.edge where false;
select pending_id, about, id, created_at, due_at from jobq_private.pending where false;
select job_id, graph_id, name from jobq_private.node where false;
select batch_id, on_success, on_end, on_first_death, queue, has_lost, opened_at, sealed_at, ended_at
from jobq_private.batch where false;

rollback;
