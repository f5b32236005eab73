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

-- sees[...], works[...] and enqueues[...] ask whether the login holds one of these queues;
-- '*' is held by who holds all queues. %1$I is the table.
do $do$
declare
    _policy record;
begin
    for _policy in
        with rule (command, tables, condition, new_row) as (
            values
            -- A job and its records. Edges, rows of pending and the tables of limits hold
            -- little but ids, and no function shows them. An event that is not a signal
            -- belongs to no queue. A limit of a whole kind has no queue.
            ('select', '{job,job_archive,key_limit,history,total,waiting_count,queue}',
                $$sees['*', queue]$$, null),
            ('select', '{latency}', $$sees['*']$$, null),
            ('select', '{setting}', 'true', null),
            ('insert', '{job_archive}', null, $$sees['*', queue]$$),
            ('insert', '{attempt,audit}', null, 'true'),
            ('update', '{job_archive}', $$works['*', queue]$$, null),
            ('delete', '{job_archive}', $$works['*', queue]$$, null),
            ('all', '{waiting_key}', $$sees['*', queue]$$, null),
            ('all', '{key_limit,queue,limit_hold}', $$works['*', queue]$$, null),
            ('all', '{limit_state}', $$queue is null or works['*', queue]$$, null),
            ('all', '{edge,pending,node,limit_change}', 'true', null),
            ('all', '{history,total,waiting_count,latency}', $$works['*']$$, null),
            ('all', '{endpoint,endpoint_definition,definition,definition_version}',
                $$works['*']$$, null),
            ('select', '{attempt}',
                'exists (select from jobq.job as j where j.job_id = %1$I.job_id)', null),
            ('delete', '{attempt}',
                'exists (select from jobq.job as j where j.job_id = %1$I.job_id)', null),
            ('all', '{job_log}',
                'exists (select from jobq.job as j where j.job_id = %1$I.job_id)', null),
            ('all', '{waiter,parked_job}', $$works['*']
                or exists (select from jobq.job as j where j.job_id = %1$I.job_id)$$, null),
            -- Who enqueues a copy of a job also copies its steps: see fork().
            ('all', '{step,stream_chunk}', $$works['*']
                or exists (select from jobq.job as j where j.job_id = %1$I.job_id)$$,
                $$works['*'] or exists (
                    select from jobq_private.job as j
                    where j.job_id = %1$I.job_id
                    and (works[j.queue] or j.attempt = 0 and enqueues['*', j.queue])
                ) or jobq_private.refuse_work(job_id)$$),
            ('all', '{event}', $$sees['*']
                or exists (select from jobq.job as j where j.job_id = %1$I.job_id)$$, null),
            ('all', '{idempotency_key,throttle}', $$sees['*'] or exists (
                select from jobq_private.kind_queue as o where o.kind = %1$I.kind and sees[o.queue]
            )$$, null),

            -- Live jobs. A login that may only enqueue may also cancel: a row that it writes
            -- is new, cancelled, or running with a request to cancel. Only schedules add rows
            -- with a slot; for these a login must work the queue.
            ('insert', '{job}', null, $$
                (
                    enqueues['*', queue]
                    or num_nonnulls(previous_state, schedule_id, slot_at) > 0 and works['*', queue]
                )
                and not exists (
                    select from jobq_private.kind_queue as o
                    where o.kind = job.kind and not sees['*', o.queue]
                )
                and (
                    dedup is null
                    or sees['*']
                    or exists (select from jobq_private.kind_queue as o where o.kind = job.kind)
                )
                or jobq_private.refuse_job(queue, kind)
            $$),
            ('update', '{job}', $$sees['*', queue]$$, $$
                works['*', queue]
                or (state = 'cancelled' or cancel_requested_at is not null) and enqueues['*', queue]
            $$),
            ('delete', '{job}',
                $$works['*', queue] or state = 'cancelled' and enqueues['*', queue]$$, null),
            ('all', '{batch}', $$sees['*', queue]$$,
                $$sees['*', queue] or jobq_private.refuse_job(queue, '(a batch)')$$),

            -- A schedule without a queue belongs to logins that see all queues. tick() adds
            -- its jobs with the rights of the author, which are checked here and again when
            -- it fires.
            ('all', '{schedule}', $$sees['*', queue]$$,
                $$sees['*', queue] or jobq_private.refuse_job(queue, kind)$$),
            ('restrictive insert', '{schedule}', null,
                'jobq_private.check_author(login, queue, kind, dedup, graph)'),

            -- A worker belongs to its login. Logins that see one of its queues see it.
            ('all', '{worker}', $$login = session_user or works['*']$$,
                $$queues <@ (select h.worked from jobq_private.held_queue as h) or works['*']$$),
            ('select', '{worker}',
                $$(select h.any_of from jobq_private.held_queue as h) && queues$$, null),

            -- Definitions
            ('select', '{kind}', $$queue is null or sees['*', queue]$$, null),
            ('all', '{kind}', $$works['*', queue]$$,
                $$works['*'] or starts_with(kind, queue || '.') and works[queue]$$),
            ('select', '{paused_kind}', $$not exists (
                select from jobq_private.kind_queue as o
                where o.kind = paused_kind.kind and not sees['*', o.queue]
            )$$, null),
            ('all', '{paused_kind}', $$works['*'] or exists (
                select from jobq_private.kind_queue as o
                where o.kind = paused_kind.kind and works[o.queue]
            )$$, null),
            -- A subscription belongs to the queue of its jobs. It is made by who works that
            -- of its kind, too.
            ('select', '{subscription}', $$sees['*', coalesce(queue, (
                select o.queue from jobq_private.kind_queue as o where o.kind = subscription.kind
            ), 'default')]$$, null),
            ('all', '{subscription}', $$works['*'] or (queue is null or works[queue]) and exists (
                select from jobq_private.kind_queue as o
                where o.kind = subscription.kind and works[o.queue]
            )$$, null),
            ('update', '{setting}', 'true', $$works['*']$$),
            ('select', '{endpoint}', $$exists (
                select from jobq_private.kind_queue as o
                where o.kind = endpoint.endpoint and sees[o.queue]
            )$$, null),
            ('select', '{endpoint_definition}',
                'endpoint in (select e.endpoint from jobq_private.endpoint as e)', null),
            ('select', '{definition}', $$(type, name) in (
                select d.type, d.name from jobq_private.endpoint_definition as d
            )$$, null),
            ('select', '{definition_version}', $$
                type in ('endpoint', 'delivery')
                and name in (select e.endpoint from jobq_private.endpoint as e)
                or (type, name) in (
                    select d.type, d.name from jobq_private.endpoint_definition as d
                    where d.type <> 'secret'
                )
            $$, null),

            -- A key of the HTTP API belongs to the login that created it; it is valid only on
            -- that login's servers (authenticate()).
            ('all', '{api_key}', $$login = session_user or works['*']$$, null),
            ('select', '{audit}', $$actor = session_user or works['*']$$, null)
        )
        select
            t.name, split_part(r.command, ' ', -1) as command,
            case when r.command ~ '^restrictive' then 'restrictive' else 'permissive' end as kind,
            coalesce(' using (' || r.condition || ')', '')
            || coalesce(' with check (' || r.new_row || ')', '') as conditions
        from rule as r
        cross join unnest(r.tables::text[]) as t (name)
    loop
        execute replace(replace(replace(
            format(
                'create policy %1$s_%2$s on jobq_private.%1$I as %3$s for %2$s'
                || _policy.conditions,
                _policy.name, _policy.command, _policy.kind
            ),
            'sees[', '(select h.any_of from jobq_private.held_queue as h) && array['),
            'works[', '(select h.worked from jobq_private.held_queue as h) && array['),
            'enqueues[', '(select h.enqueued from jobq_private.held_queue as h) && array[');
    end loop;
end
$do$;

commit;
