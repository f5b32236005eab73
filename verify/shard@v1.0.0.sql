-- Verify jobq:shard on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.choose_shard', ''),
        ('function', 'jobq.put_epoch', ''),
        ('function', 'jobq.put_shard', ''),
        ('function', 'jobq_internal.confirm_jobs', ''),
        ('function', 'jobq_internal.list_declarations', ''),
        ('function', 'jobq_internal.list_epochs', ''),
        ('function', 'jobq_internal.list_leftovers', ''),
        ('function', 'jobq_internal.list_moved', ''),
        ('function', 'jobq_internal.list_router_statements', ''),
        ('function', 'jobq_internal.list_shards', ''),
        ('function', 'jobq_internal.put_successor', ''),
        ('function', 'jobq_internal.receive_jobs', ''),
        ('function', 'jobq_internal.send_jobs', ''),
        ('function', 'jobq_internal.shard_of', ''),
        ('function', 'jobq_private.become_shard', ''),
        ('function', 'jobq_private.router_answer', ''),
        ('function', 'jobq_private.router_body', ''),
        ('function', 'jobq_private.router_calls', ''),
        ('function', 'jobq_private.router_function', ''),
        ('function', 'jobq_private.router_place', ''),
        ('view', 'jobq_private.routed_function', '')
    )
    select string_agg(w.kind || ' ' || w.name || ' ' || w.trigger, ', ') into _wrong
    from wanted as w
    where case w.kind
        when 'trigger' then not exists (
            select from pg_catalog.pg_trigger as t
            where t.tgrelid = to_regclass(w.name) and t.tgname = w.trigger
        )
        when 'view' then coalesce(
            has_table_privilege('public', to_regclass(w.name), 'select'), true
        )
        else coalesce(
            has_function_privilege('public', to_regproc(w.name)::oid, 'execute'), true
        )
    end;
    if _wrong is not null then
        raise exception 'missing, or open to PUBLIC: %', _wrong;
    end if;
end
$$;

rollback;
