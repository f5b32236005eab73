-- Purpose: Lists definitions that must be the same on all shards, and schedules, which
-- are on one. Only for jobq_owner.
-- Invariant: reads only; contains checksums of secrets, not their values. Omits what
-- each database sets itself, such as times and version numbers. Raises: nothing.
-- Column type: map, interface (this version's functions), setting, retry_preset, kind, queue,
-- limit, payload_spec, config, secret, endpoint, queue_grant or schedule.
-- Column declaration: the declaration as JSON.
-- Example: select type, name from jobq_internal.list_declarations();
create or replace function jobq_internal.list_declarations()
returns table (type text, name text, declaration jsonb) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select d.type, d.name, d.declaration - array[
        'created_at', 'updated_at', 'paused_at', 'version', 'delivery_version', 'test_job_id',
        'ciphertext'
    ]
    from (
        select 'map', 'shards', jsonb_build_object('shards', (
            select jsonb_agg(s.shard_id order by s.shard_id) from jobq_private.shard as s
            where s.removed_at is null
        ))
        union all
        select 'map', 'epoch ' || e.epoch, jsonb_build_object('shards', e.shard_ids)
        from jobq_private.shard_epoch as e
        union all
        select
            'interface', 'functions',
            jsonb_build_object('checksum', md5(string_agg(s.statement, ';' order by s.ordinal)))
        from jobq_internal.list_router_statements() as s
        union all
        select 'setting', e.key, jsonb_build_object('value', e.value)
        from jobq_private.setting as s
        cross join lateral jsonb_each(to_jsonb(s) - 'shard_id') as e
        union all
        select 'retry_preset', r.retry_preset, to_jsonb(r) from jobq_private.retry_preset as r
        union all
        select 'kind', k.kind, to_jsonb(k) from jobq_private.kind as k
        union all
        select 'subscription', s.event || ' ' || s.kind, jsonb_build_object('queue', s.queue)
        from jobq_private.subscription as s
        union all
        select 'paused_kind', p.kind, to_jsonb(p) from jobq_private.paused_kind as p
        union all
        select
            'queue', q.queue,
            to_jsonb(q) || jsonb_build_object('is_paused', q.paused_at is not null)
        from jobq_private.queue as q
        union all
        select 'limit', l.queue || ' ' || l.concurrency_key, to_jsonb(l)
        from jobq_private.key_limit as l
        union all
        select
            d.type, d.name,
            to_jsonb(d) || jsonb_build_object('checksum', md5(d.ciphertext))
        from jobq_private.definition as d
        union all
        select
            'endpoint', e.endpoint,
            to_jsonb(e) || jsonb_build_object('is_paused', e.paused_at is not null)
        from jobq_private.endpoint as e
        union all
        select 'queue_grant', concat_ws(' ', g.grantee, g.queue, g.privilege), to_jsonb(g)
        from jobq_private.queue_grant as g
        union all
        select 'schedule', s.name, jsonb_build_object('schedule_id', s.schedule_id)
        from jobq_private.schedule as s
        where s.status <> 'retired'
    ) as d (type, name, declaration)
    order by d.type, d.name
$$;
