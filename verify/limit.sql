-- Verify jobq:limit on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.delete_limit', '', 1),
        ('function', 'jobq.list_limits', '', 1),
        ('function', 'jobq.put_limit', '', 1),
        ('function', 'jobq_private.call_full_lanes', '', 1),
        ('function', 'jobq_private.call_lane', '', 1),
        ('function', 'jobq_private.call_lanes', '', 1),
        ('function', 'jobq_private.check_concurrency_key', '', 1),
        ('function', 'jobq_private.check_concurrency_keys', '', 1),
        ('function', 'jobq_private.claim_lanes', '', 1),
        ('function', 'jobq_private.close_lanes', '', 1),
        ('function', 'jobq_private.follow_limits', '', 1),
        ('function', 'jobq_private.free_places', '', 1),
        ('function', 'jobq_private.has_lanes', '', 1),
        ('function', 'jobq_private.has_room', '', 1),
        ('function', 'jobq_private.lane_id', '', 1),
        ('function', 'jobq_private.lane_limit', '', 1),
        ('function', 'jobq_private.lane_slot', '', 1),
        ('function', 'jobq_private.leave_lane', '', 1),
        ('function', 'jobq_private.limits_changed', '', 1),
        ('function', 'jobq_private.next_lane', '', 1),
        ('function', 'jobq_private.open_lanes', '', 1),
        ('function', 'jobq_private.pick_lanes', '', 1),
        ('function', 'jobq_private.place_in_lane', '', 1),
        ('function', 'jobq_private.take_from_lanes', '', 1),
        ('trigger', 'jobq_private.key_limit', 'key_limits', 1),
        ('trigger', 'jobq_private.queue', 'queue_birth_limits', 1),
        ('trigger', 'jobq_private.queue', 'queue_end_limits', 1),
        ('trigger', 'jobq_private.queue', 'queue_limits', 1)
    )
    select string_agg(w.kind || ' ' || w.name || ' ' || w.trigger, ', ') into _wrong
    from wanted as w
    where case w.kind
        when 'trigger' then not exists (
            select from pg_catalog.pg_trigger as t
            where t.tgrelid = to_regclass(w.name) and t.tgname = w.trigger
        )
        when 'view' then to_regclass(w.name) is null
            or has_table_privilege('public', to_regclass(w.name), 'select')
        else w.many > (
            select count(*)
            from pg_catalog.pg_proc as p
            join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
            where format('%s.%s', n.nspname, p.proname) = w.name
            and not has_function_privilege('public', p.oid, 'execute')
        )
    end;
    if _wrong is not null then
        raise exception 'missing, or open to PUBLIC: %', _wrong;
    end if;
end
$$;

rollback;
