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
values
('choose_shard', 'own', ''),
('list_epochs', 'own', ''),
('list_shards', 'own', ''),
('shard_of', 'own', ''),
('put_epoch', 'own', 'router.sql'),
('put_shard', 'own', 'router.sql'),
('put_successor', 'own', 'router.sql'),
('confirm_jobs', 'refused', 'each shard has its own: jobq cluster move'),
('list_leftovers', 'refused', 'each shard lists its own: jobq cluster move'),
('list_moved', 'refused', 'the router asks the shards itself'),
('receive_jobs', 'refused', 'each shard has its own: jobq cluster move'),
('send_jobs', 'refused', 'each shard has its own: jobq cluster move'),
('enqueue', 'key', ''),
('open_batch', 'lot', ''),
('test_endpoint', 'lot', ''),
('enqueue_graph', 'lot', 'graph_of'),
('cancel', 'id', 'job_id'),
('cancel_tree', 'id', 'job_id'),
('claim_job', 'id', 'job_id'),
('complete', 'id', 'job_id'),
('confirm_cancel', 'id', 'job_id'),
('explain', 'id', 'job_id'),
('fail', 'id', 'job_id'),
('get_job', 'id', 'job_id'),
('hold_lane', 'id', 'job_id'),
('list_attempts', 'id', 'job_id'),
('list_inputs', 'id', 'job_id'),
('list_logs', 'id', 'job_id'),
('list_steps', 'id', 'job_id'),
('log', 'id', 'job_id'),
('rate_limited', 'id', 'job_id'),
('redrive', 'id', 'job_id'),
('redrive_tree', 'id', 'job_id'),
('release', 'id', 'job_id'),
('save_step', 'id', 'job_id'),
('set_progress', 'id', 'job_id'),
('show_graph', 'id', 'job_id'),
('signal', 'id', 'job_id'),
('spend', 'id', 'job_id'),
('wait_for', 'id', 'job_id'),
('batch_status', 'id', 'batch_id'),
('cancel_batch', 'id', 'batch_id'),
('seal_batch', 'id', 'batch_id'),
('create_schedule', 'schedule', 'name'),
('backfill_schedule', 'schedule', 'schedule'),
('get_schedule', 'schedule', 'schedule'),
('list_schedule_versions', 'schedule', 'schedule'),
('pause_schedule', 'schedule', 'schedule'),
('preview_schedule', 'schedule', 'schedule'),
('resume_schedule', 'schedule', 'schedule'),
('retire_schedule', 'schedule', 'schedule'),
('run_schedule', 'schedule', 'schedule'),
('schedule_status', 'schedule', 'schedule'),
('update_schedule', 'schedule', 'schedule'),
('configure', 'every', ''),
('delete_definition', 'every', ''),
('delete_kind', 'every', ''),
('delete_limit', 'every', ''),
('delete_queue', 'every', ''),
('emit', 'every', ''),
('enforce_queue_grants', 'every', ''),
('grant_queue', 'every', ''),
('hold_key', 'every', ''),
('pause_endpoint', 'every', ''),
('pause_queue', 'every', ''),
('put_budget', 'every', ''),
('put_config', 'every', ''),
('put_endpoint', 'every', ''),
('put_kind', 'every', ''),
('put_limit', 'every', ''),
('put_payload_spec', 'every', ''),
('put_queue', 'every', ''),
('put_secret', 'every', ''),
('release_key', 'every', ''),
('resume_endpoint', 'every', ''),
('resume_queue', 'every', ''),
('retire_worker', 'every', ''),
('revoke_queue', 'every', ''),
('rotate_secret', 'every', ''),
('backoff', 'any', ''),
('list_ciphertexts', 'any', ''),
('list_kinds', 'any', ''),
('list_payload_schemas', 'any', ''),
('list_queue_grants', 'any', ''),
('list_queues', 'any', ''),
('list_versions', 'any', ''),
('next_tick', 'any', ''),
('page_definitions', 'any', ''),
('preview_cron', 'any', ''),
('settings', 'any', ''),
('show_definition', 'any', ''),
('version', 'any', ''),
('list_workers', 'lists', ''),
('recover', 'all', ''),
('tick', 'all', ''),
('maintain', 'all', ''),
('health', 'lists', ''),
('find_job', 'all',
    'select job_id from answers as a (job_id) where job_id is not null limit 1'),
('list_jobs', 'lists',
    'select a.* from answers as a where a.job_id >= coalesce((select m.job_id from answers as m'
    || ' where m.state is null order by m.job_id desc limit 1), ''00000000-0000-0000-0000-000000000000'')'
    || ' order by a.job_id desc limit max_jobs'),
('list_undeclared_kinds', 'all', 'select distinct a.* from answers as a order by 1'),
('list_schedules', 'lists',
    'select * from answers order by schedule_id desc limit max_schedules'),
('list_limits', 'lists',
    'select queue, concurrency_key, max_running, rate_limit, rate_period, '
    || 'rate_burst, sum(running)::bigint, max(updated_at) from answers group by 1, 2, '
    || '3, 4, 5, 6 order by 1, 2'),
('list_budgets', 'lists',
    'select scope_type, scope, concurrency_key, each_key, sum(amount), period, time_zone, '
    || 'sum(spent), sum(reserved), min(next_period_at) from answers group by 1, 2, 3, 4, 6, 7 '
    || 'order by 1, 2, 4, 3 nulls first'),
('metrics', 'lists',
    'select name, queue, case when name ~ ''seconds|rate'' then max(value) else '
    || 'sum(value) end from answers group by 1, 2 order by 1, 2'),
('queue_stats', 'lists',
    'select queue, sum(queued)::bigint, sum(scheduled)::bigint, '
    || 'sum(running)::bigint, sum(retrying)::bigint, sum(dead)::bigint, '
    || 'max(oldest_runnable), sum(finished_last_minute)::bigint, bool_and(is_paused), '
    || 'sum(lanes)::bigint, sum(closed_lanes)::bigint, bool_and(is_exact), '
    || 'sum(blocked)::bigint from answers group by 1 order by 1'),
('ready', 'all', 'select max(queue), max(repo) from answers'),
('cancel_many', 'some', 'max_jobs'),
('change_many', 'some', 'max_jobs'),
('delete_many', 'some', 'max_jobs'),
('redrive_many', 'some', 'max_jobs'),
('enqueue_many', 'jobs', 'jobs'),
('complete_many', 'split', 'job_ids'),
('release_many', 'split', 'job_ids'),
('save_steps', 'split', 'job_ids'),
('fail_many', 'split', 'failures'),
('claim', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('claim_calls', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('exchange', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('get_delivery', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('list_undeliverable', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('list_declarations', 'refused', 'each shard lists its own: jobq cluster check'),
('list_router_statements', 'refused', 'a shard writes them'),
('heartbeat', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('due_in', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('next_due', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('maintain_in', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('tick_in', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('run_calls', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('work', 'refused',
    'workers are connected to each shard: jobq worker --database URL --database URL'),
('begin_wait', 'refused', 'who waits listens on the shard'),
('end_wait', 'refused', 'who waits listens on the shard'),
('wait', 'refused', 'who waits listens on the shard'),
('await_events', 'refused', 'who waits listens on the shard'),
('listen_events', 'refused', 'who waits listens on the shard'),
('advance_clock', 'refused', 'the clock is that of one database'),
('replica_lag', 'refused', 'each shard has standbys of its own'),
('endpoint_stats', 'refused', 'percentiles of several databases do not add up');

commit;
