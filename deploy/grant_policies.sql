-- Deploy jobq:grant_policies to pg
-- Which rows a login may see and change while grants by queue are enforced; otherwise
-- PostgreSQL does not read the policies. Functions of jobq run as jobq_owner, which owns
-- the tables, so enforcement is forced; it depends on the login (held_queue).
--
-- A job and its records belong to its queue. A kind that names a queue belongs to it too,
-- with its endpoint and the definitions of that. Keys require such a kind of one's own,
-- because they are stored by kind. Rows without a queue (settings, secrets, other kinds)
-- are changed by logins that work all queues.
begin;
set local role jobq_owner;

-- The policies that consist of common rules, which are joined by "or". Edges, rows of
-- pending and the tables of limits hold little but ids, and no function shows them. An
-- event that is not a signal belongs to no queue. A limit of a whole kind has no queue.
do $do$
declare
    _policy record;
begin
    for _policy in
        with rule (rule, condition) as (
            values
            ('anyone', 'true'),
            ('no queue', 'queue is null'),
            ('sees the queue',
                $$(select h.any_of from jobq_private.held_queue as h) && array['*', queue]$$),
            ('works the queue',
                $$(select h.worked from jobq_private.held_queue as h) && array['*', queue]$$),
            ('sees all queues',
                $$(select h.any_of from jobq_private.held_queue as h) && array['*']$$),
            ('works all queues',
                $$(select h.worked from jobq_private.held_queue as h) && array['*']$$),
            ('sees the job',
                'exists (select from jobq.job as j where j.job_id = %1$I.job_id)'),
            ('sees the queue of the kind',
                'exists (select from jobq_private.kind_queue as o where o.kind = %1$I.kind and'
                ' (select h.any_of from jobq_private.held_queue as h) && array[o.queue])'),
            ('sees the endpoint',
                'endpoint in (select e.endpoint from jobq_private.endpoint as e)')
        )
        select p.command, t.name, format(
            (
                select string_agg(r.condition, ' or ' order by g.n)
                from unnest(p.rules) with ordinality as g (rule, n)
                join rule as r on r.rule = g.rule
            ), t.name
        ) as condition
        from (
            values
            ('select', '{sees the queue}'::text[],
                '{job,job_archive,key_limit,history,total,waiting_count,queue}'::text[]),
            ('select', '{sees all queues}', '{latency}'),
            ('select', '{sees the job}', '{attempt}'),
            ('select', '{sees the endpoint}', '{endpoint_secret,pinned_definition}'),
            ('select', '{no queue,sees the queue}', '{kind}'),
            ('select', '{anyone}', '{setting}'),
            ('insert', '{sees the queue}', '{job_archive}'),
            ('insert', '{anyone}', '{attempt,audit}'),
            ('update', '{works the queue}', '{job_archive}'),
            ('delete', '{works the queue}', '{job_archive}'),
            ('delete', '{sees the job}', '{attempt}'),
            ('all', '{sees the queue}', '{waiting_key}'),
            ('all', '{works the queue}', '{key_limit,queue}'),
            ('all', '{no queue,works the queue}', '{limit_state}'),
            ('all', '{works all queues}', '{history,total,waiting_count,latency}'),
            ('all', '{works all queues}', '{endpoint,endpoint_secret,payload_spec,config,secret}'),
            ('all', '{works all queues}', '{pinned_definition,definition_version}'),
            ('all', '{sees the job}', '{job_log}'),
            ('all', '{works all queues,sees the job}', '{step,waiter,parked_job}'),
            ('all', '{sees all queues,sees the job}', '{event}'),
            ('all', '{sees all queues,sees the queue of the kind}', '{idempotency_key,throttle}'),
            ('all', '{anyone}', '{edge,pending,node}'),
            ('all', '{anyone}', '{reported_cost,limit_change}')
        ) as p (command, rules, tables)
        cross join unnest(p.tables) as t (name)
    loop
        execute format(
            'create policy %1$I on jobq_private.%2$I for %3$s %4$s (%5$s)',
            _policy.name || '_' || _policy.command, _policy.name, _policy.command,
            case _policy.command when 'insert' then 'with check' else 'using' end,
            _policy.condition
        );
    end loop;
end
$do$;

-- Live jobs. A login that may only enqueue may also cancel: a row that it writes is new,
-- cancelled, or running with a request to cancel. Only schedules add rows with a slot; for
-- these a login must work the queue.
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

create policy batch_all on jobq_private.batch
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue])
with check (
    (select h.any_of from jobq_private.held_queue as h) && array['*', queue]
    or jobq_private.refuse_job(queue, '(a batch)')
);

-- A schedule without a queue belongs to logins that see all queues. tick() adds its jobs
-- with the rights of the author, which are checked here and again when it fires.
create policy schedule_all on jobq_private.schedule
using ((select h.any_of from jobq_private.held_queue as h) && array['*', queue])
with check (
    (select h.any_of from jobq_private.held_queue as h) && array['*', queue]
    or jobq_private.refuse_job(queue, kind)
);

create policy schedule_insert on jobq_private.schedule as restrictive for insert
with check (jobq_private.check_author(login, queue, kind, dedup, graph));

-- A worker belongs to its login. Logins that see one of its queues see it.
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

-- A subscription belongs to the queue of its jobs. It is made by who works that of its kind, too.
create policy subscription_select on jobq_private.subscription for select
using ((select h.any_of from jobq_private.held_queue as h) && array['*', coalesce(
    queue, (select o.queue from jobq_private.kind_queue as o where o.kind = subscription.kind), 'default'
)]);

create policy subscription_all on jobq_private.subscription
using (
    (select h.worked from jobq_private.held_queue as h) && array['*']
    or (
        (queue is null or (select h.worked from jobq_private.held_queue as h) && array[queue])
        and exists (
            select from jobq_private.kind_queue as o
            where o.kind = subscription.kind
            and (select h.worked from jobq_private.held_queue as h) && array[o.queue]
        )
    )
);

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

create policy payload_spec_select on jobq_private.payload_spec for select
using (payload_spec in (select e.payload_spec from jobq_private.endpoint as e));

create policy config_select on jobq_private.config for select
using (config in (select e.config from jobq_private.endpoint as e));

create policy secret_select on jobq_private.secret for select
using (secret in (select s.secret from jobq_private.endpoint_secret as s));

create policy definition_version_select on jobq_private.definition_version for select
using (
    (
        type in ('endpoint', 'delivery')
        and name in (select e.endpoint from jobq_private.endpoint as e)
    )
    or (type, name) in (select p.type, p.name from jobq_private.pinned_definition as p)
);

-- A key of the HTTP API belongs to the login that created it; it is valid only on that
-- login's servers (authenticate()).
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

commit;
