-- Deploy jobq:grant_policies to pg
-- Who sees and touches which rows once jobq.enforce_queue_grants() has been called; before
-- that, policies are not even read. Functions of jobq run as jobq_owner, who owns the
-- tables, so security is forced; it is decided by who has logged in (held_queue).
--
-- A job, and all that hangs on it, belongs to its queue. A kind that names a queue belongs
-- to it too, with its endpoint and what that refers to; only with such a kind of one's own
-- can keys be used, since keys are held by kind. What belongs to no queue (settings,
-- secrets, other kinds) is changed by who works all queues.
begin;
set local role jobq_owner;

-- Live jobs. Who may only enqueue may cancel too, and no more: a row that it has written
-- is new, cancelled, or running with a request to cancel. A new row of a schedule, which alone has a
-- slot, is added by who works its queue.
create policy job_select on jobq_private.job for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy job_insert on jobq_private.job for insert
with check (
    (
        (
            (select h.enqueued from jobq_private.held_queue as h) && array['*', queue]
            or (
                num_nonnulls(previous_state, schedule_id, slot_at) > 0
                and (select h.worked from jobq_private.held_queue as h) && array['*', queue]
            )
        )
        and not exists (
            select from jobq_private.kind_queue as o
            where o.kind = job.kind
            and not (select h.any_of from jobq_private.held_queue as h) && array['*', o.queue]
        )
        and (
            dedup is null
            or (select h.any_of from jobq_private.held_queue as h) && array['*']
            or exists (select from jobq_private.kind_queue as o where o.kind = job.kind)
        )
    )
    or jobq_private.refuse_job(queue, kind)
);

create policy job_update on jobq_private.job for update
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue])
with check (
    (select h.worked from jobq_private.held_queue as h) && array['*', queue]
    or (
        (state = 'cancelled' or cancel_requested_at is not null)
        and (select h.enqueued from jobq_private.held_queue as h) && array['*', queue]
    )
);

create policy job_delete on jobq_private.job for delete
using (
    (select h.worked from jobq_private.held_queue as h) && array['*', queue]
    or (
        state = 'cancelled'
        and (select h.enqueued from jobq_private.held_queue as h) && array['*', queue]
    )
);

-- History
create policy job_archive_select on jobq_private.job_archive for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy job_archive_insert on jobq_private.job_archive for insert
with check ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy job_archive_update on jobq_private.job_archive for update
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue]);

create policy job_archive_delete on jobq_private.job_archive for delete
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue]);

create policy attempt_select on jobq_private.attempt for select
using (exists (select from jobq.job as j where j.job_id = attempt.job_id));

create policy attempt_insert on jobq_private.attempt for insert
with check (true);

create policy attempt_delete on jobq_private.attempt for delete
using (exists (select from jobq.job as j where j.job_id = attempt.job_id));

create policy job_log_all on jobq_private.job_log
using (exists (select from jobq.job as j where j.job_id = job_log.job_id));

create policy step_all on jobq_private.step
using (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or exists (select from jobq.job as j where j.job_id = step.job_id)
);

create policy waiter_all on jobq_private.waiter
using (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or exists (select from jobq.job as j where j.job_id = waiter.job_id)
);

-- An event that is no signal belongs to no queue.
create policy event_all on jobq_private.event
using (
    (select h.any_of from jobq_private.held_queue as h) && array['*']
    or exists (select from jobq.job as j where j.job_id = event.job_id)
);

-- Edges and rows of pending are nothing but ids, and shown to nobody; who sees a job sees what it waits
-- for as far as it sees that too.
create policy edge_all on jobq_private.edge
using (true);

create policy pending_all on jobq_private.pending
using (true);

create policy node_all on jobq_private.node
using (true);

create policy batch_all on jobq_private.batch
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue])
with check (
    (select h.any_of from jobq_private.held_queue as h) && array['*', queue]
    or jobq_private.refuse_job(queue, '(a batch)')
);

create policy idempotency_key_all on jobq_private.idempotency_key
using (
    (select h.any_of from jobq_private.held_queue as h) && array['*']
    or exists (
        select from jobq_private.kind_queue as o
        where o.kind = idempotency_key.kind
        and (select h.any_of from jobq_private.held_queue as h) && array[o.queue]
    )
);

create policy throttle_all on jobq_private.throttle
using (
    (select h.any_of from jobq_private.held_queue as h) && array['*']
    or exists (
        select from jobq_private.kind_queue as o
        where o.kind = throttle.kind
        and (select h.any_of from jobq_private.held_queue as h) && array[o.queue]
    )
);

-- Schedules: one without a queue of its own belongs to who holds all queues. Its jobs are added by
-- who calls tick(), and with the rights of who has declared it, so these are looked at here, and
-- again as it fires.
create policy schedule_all on jobq_private.schedule
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue])
with check (
    (select h.any_of from jobq_private.held_queue as h) && array['*', queue]
    or jobq_private.refuse_job(queue, kind)
);

create policy schedule_insert on jobq_private.schedule as restrictive for insert
with check (jobq_private.check_author(login, queue, kind, dedup, graph));

-- Keys with waiting jobs, and limits, belong to their queue.
create policy waiting_key_all on jobq_private.waiting_key
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy key_limit_select on jobq_private.key_limit for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy key_limit_all on jobq_private.key_limit
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue]);

-- So do limits, but for those of kinds as a whole.
create policy limit_state_all on jobq_private.limit_state
using (
    queue is null
    or (select h.worked from jobq_private.held_queue as h) && array['*', queue]
);

create policy reported_cost_all on jobq_private.reported_cost using (true);

create policy limit_change_all on jobq_private.limit_change using (true);

-- The history of charts belongs to its queue; what is of all queues, to who holds all.
create policy history_select on jobq_private.history for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy history_all on jobq_private.history
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy total_select on jobq_private.total for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy total_all on jobq_private.total
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy waiting_count_select on jobq_private.waiting_count for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy waiting_count_all on jobq_private.waiting_count
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy latency_select on jobq_private.latency for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*']);

create policy latency_all on jobq_private.latency
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

-- Workers belong to their log-in, and are seen by who holds a queue that they work.
create policy worker_all on jobq_private.worker
using (
    login = session_user
    or (select h.worked from jobq_private.held_queue as h) && array['*']
)
with check (
    queues <@ (select h.worked from jobq_private.held_queue as h)
    or (select h.worked from jobq_private.held_queue as h) && array['*']
);

create policy worker_select on jobq_private.worker for select
using ((select h.any_of from jobq_private.held_queue as h) && queues);

-- Definitions
create policy queue_select on jobq_private.queue for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue]);

create policy queue_all on jobq_private.queue
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue]);

create policy kind_select on jobq_private.kind for select
using (
    queue is null
    or (select h.any_of from jobq_private.held_queue as h) && array['*', queue]
);

create policy kind_all on jobq_private.kind
using ((select h.worked from jobq_private.held_queue as h) && array['*', queue])
with check (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or (
        starts_with(kind, queue || '.')
        and (select h.worked from jobq_private.held_queue as h) && array[queue]
    )
);

create policy paused_kind_select on jobq_private.paused_kind for select
using (
    not exists (
        select from jobq_private.kind_queue as o
        where o.kind = paused_kind.kind
        and not (select h.any_of from jobq_private.held_queue as h) && array['*', o.queue]
    )
);

create policy paused_kind_all on jobq_private.paused_kind
using (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or exists (
        select from jobq_private.kind_queue as o
        where o.kind = paused_kind.kind
        and (select h.worked from jobq_private.held_queue as h) && array[o.queue]
    )
);

create policy setting_select on jobq_private.setting for select
using (true);

create policy setting_update on jobq_private.setting for update
using (true)
with check ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy endpoint_select on jobq_private.endpoint for select
using (
    exists (
        select from jobq_private.kind_queue as o
        where o.kind = endpoint.endpoint
        and (select h.any_of from jobq_private.held_queue as h) && array[o.queue]
    )
);

create policy endpoint_all on jobq_private.endpoint
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy parked_job_all on jobq_private.parked_job
using (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or exists (select from jobq.job as j where j.job_id = parked_job.job_id)
);

create policy endpoint_secret_select on jobq_private.endpoint_secret for select
using (endpoint in (select e.endpoint from jobq_private.endpoint as e));

create policy endpoint_secret_all on jobq_private.endpoint_secret
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy payload_spec_select on jobq_private.payload_spec for select
using (payload_spec in (select e.payload_spec from jobq_private.endpoint as e));

create policy payload_spec_all on jobq_private.payload_spec
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy config_select on jobq_private.config for select
using (config in (select e.config from jobq_private.endpoint as e));

create policy config_all on jobq_private.config
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy secret_select on jobq_private.secret for select
using (secret in (select s.secret from jobq_private.endpoint_secret as s));

create policy secret_all on jobq_private.secret
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy pinned_definition_select on jobq_private.pinned_definition for select
using (endpoint in (select e.endpoint from jobq_private.endpoint as e));

create policy pinned_definition_all on jobq_private.pinned_definition
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

create policy definition_version_select on jobq_private.definition_version for select
using (
    (
        type in ('endpoint', 'delivery')
        and name in (select e.endpoint from jobq_private.endpoint as e)
    )
    or (type, name) in (select p.type, p.name from jobq_private.pinned_definition as p)
);

create policy definition_version_all on jobq_private.definition_version
using ((select h.worked from jobq_private.held_queue as h) && array['*']);

-- Keys of the HTTP API belong to the log-in that made them, which is the only one whose
-- servers they open (authenticate()).
create policy api_key_all on jobq_private.api_key
using (
    login = session_user
    or (select h.worked from jobq_private.held_queue as h) && array['*']
);

create policy audit_select on jobq_private.audit for select
using (
    actor = session_user
    or (select h.worked from jobq_private.held_queue as h) && array['*']
);

create policy audit_insert on jobq_private.audit for insert
with check (true);

commit;
