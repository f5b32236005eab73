-- Deploy jobq:shard_tables to pg
begin;
set local role jobq_owner;

-- The databases of a cluster. All of them, and its router, hold the same rows but for is_own. Jobs of
-- a shard may move to its successor, to which all its ids lead once it is removed. A removed shard
-- keeps its row, because ids contain its number.
create table jobq_private.shard (
    shard_id integer not null,
    url text not null,
    is_own boolean not null default false,
    successor integer,
    removed_at timestamptz,
    constraint shard_pkey primary key (shard_id),
    constraint shard_successor_check check (successor <> shard_id),
    constraint shard_removed_at_check check (removed_at is null or successor is not null),
    constraint shard_shard_id_check check (shard_id between 0 and 255),
    constraint shard_url_check check (length(url) between 1 and 2048)
);

create unique index shard_is_own_key on jobq_private.shard (is_own)
where is_own;

comment on table jobq_private.shard is 'The databases of a cluster, and which of them this is.';

-- From when on which shards get new keys. Earlier ones are kept: keys may be where they led.
create table jobq_private.shard_epoch (
    epoch integer not null,
    shard_ids integer[] not null,
    began_at timestamptz not null default now(),
    constraint shard_epoch_pkey primary key (epoch),
    constraint shard_epoch_epoch_check check (epoch >= 1),
    constraint shard_epoch_shard_ids_check check (cardinality(shard_ids) between 1 and 256)
);

comment on table jobq_private.shard_epoch is 'From when on which shards get new keys.';

-- How each public function answers in a cluster, for routers and for clients of several databases:
--   key       a new job: on the shard that its keys choose
--   lot       what has no key: on any shard that gets new keys; detail names an argument whose id decides
--   id        on the shard of the id in the argument that detail names
--   schedule  on the shard of the schedule that this argument names, by its id or name
--   every     on all shards; the answer is any true, the sum of counts, or the first
--   any       on one shard, as all answer alike
--   all       on all shards; detail makes one answer of their rows, which are `answers`
--   lists     as all, but without the shards that do not answer, which a warning names
--   some      where job_ids says, or from shard to shard until the argument in detail is reached
--   split     by shard, and put together in the order of the argument that detail names
--   jobs      new jobs, those of each shard together, and answered in their order
--   own       by the router itself
--   refused   not in a cluster, for the reason in detail
create table jobq_private.route (
    function_name text not null,
    class text not null,
    detail text not null,
    constraint route_pkey primary key (function_name),
    constraint route_class_check check (class in (
        'key', 'lot', 'id', 'schedule', 'every', 'any', 'all', 'lists', 'some', 'split', 'jobs',
        'own', 'refused'
    ))
);

comment on table jobq_private.route is 'How each public function answers in a cluster.';

insert into jobq_private.route (function_name, class, detail)
select f.name, r.class, btrim(r.detail, E' \n')
from (
    values
    ('own', '', '
        choose_shard list_epochs list_shards put_epoch put_shard put_successor shard_of
    '),
    ('refused', 'each shard has its own: jobq cluster move', '
        confirm_jobs list_leftovers receive_jobs send_jobs
    '),
    ('refused', 'the router asks the shards itself', 'list_moved'),
    ('key', '', 'enqueue'),
    ('lot', '', 'open_batch publish test_endpoint'),
    ('lot', 'graph_of', 'enqueue_graph'),
    ('id', 'job_id', '
        answer append ask call_children cancel cancel_tree claim_job complete confirm_cancel
        explain fail fork get_job list_attempts list_inputs list_logs list_steps list_streams
        log rate_limited read_stream redrive redrive_tree release rerun save_step send_message
        set_progress show_graph signal spend start_children wait_any wait_for
    '),
    ('id', 'batch_id', 'batch_status cancel_batch seal_batch'),
    ('schedule', 'name', 'create_schedule'),
    ('schedule', 'schedule', '
        backfill_schedule get_schedule list_schedule_versions pause_schedule
        preview_schedule resume_schedule retire_schedule run_schedule
        schedule_status update_schedule
    '),
    ('every', '', '
        configure delete_definition delete_kind delete_queue emit
        enforce_queue_grants grant_queue hold_key pause_endpoint pause_kind
        pause_queue put_budget put_config put_endpoint put_kind put_limit put_payload_spec
        put_queue put_secret release_key subscribe unsubscribe
        resume_endpoint resume_kind resume_queue
        retire_worker
        revoke_queue rotate_secret
    '),
    ('any', '', '
        list_ciphertexts list_kinds list_payload_schemas list_queue_grants
        list_queues list_subscriptions list_versions next_tick page_definitions preview_cron settings
        show_definition version
    '),
    ('lists', '', 'health list_waits list_workers'),
    ('all', '', 'maintain recover tick'),
    ('some', 'max_jobs', 'cancel_many change_many delete_many redrive_many'),
    ('jobs', 'jobs', 'enqueue_many'),
    ('split', 'job_ids', 'complete_many read_streams release_many save_steps'),
    ('split', 'failures', 'fail_many'),
    ('refused', 'workers are connected to each shard: jobq worker --database URL --database URL', '
        append_many call_many claim claim_calls due_in exchange get_call get_delivery heartbeat
        list_undeliverable maintain_in read_steps run_calls work
    '),
    ('refused', 'each shard lists its own: jobq cluster check', 'list_declarations'),
    ('refused', 'a shard writes them', 'list_router_statements'),
    ('refused', 'who waits listens on the shard', '
        await_events await_stream begin_wait end_wait listen_events wait
    '),
    ('refused', 'the clock is that of one database', 'advance_clock'),
    ('refused', 'each shard has standbys of its own', 'replica_lag'),
    ('refused', 'percentiles of several databases do not add up', 'endpoint_stats'),
    ('all', '
        select job_id from answers as a (job_id) where job_id is not null
        limit 1
    ', 'find_job'),
    ('lists', '
        select a.* from answers as a where a.job_id >= coalesce((select m.job_id
        from answers as m where m.state is null order by m.job_id desc limit 1),
        ''00000000-0000-0000-0000-000000000000'') order by a.job_id desc limit
        max_jobs
    ', 'list_jobs'),
    ('all', 'select distinct a.* from answers as a order by 1', 'list_undeclared_kinds'),
    ('lists', '
        select * from answers order by schedule_id desc limit max_schedules
    ', 'list_schedules'),
    ('lists', '
        select queue, concurrency_key, max_running, rate_limit, rate_period,
        rate_burst, sum(running)::bigint, max(updated_at) from answers group by
        1, 2, 3, 4, 5, 6 order by 1, 2
    ', 'list_limits'),
    ('lists', '
        select scope_type, scope, concurrency_key, each_key, sum(amount),
        period, time_zone, sum(spent), sum(reserved), min(next_period_at) from
        answers group by 1, 2, 3, 4, 6, 7 order by 1, 2, 4, 3 nulls first
    ', 'list_budgets'),
    ('lists', '
        select name, queue, case when name ~ ''seconds|rate'' then max(value)
        else sum(value) end from answers group by 1, 2 order by 1, 2
    ', 'metrics'),
    ('lists', '
        select queue, sum(queued)::bigint, sum(scheduled)::bigint,
        sum(running)::bigint, sum(retrying)::bigint, sum(dead)::bigint,
        max(oldest_runnable), sum(finished_last_minute)::bigint,
        bool_and(is_paused), sum(waiting_keys)::bigint, sum(closed_keys)::bigint,
        bool_and(is_exact), sum(blocked)::bigint from answers
        group by 1 order by 1
    ', 'queue_stats'),
    ('all', 'select max(queue), max(repo) from answers', 'ready')
) as r (class, detail, functions)
cross join lateral regexp_split_to_table(btrim(r.functions, E' \n'), '\s+') as f (name);

commit;
