-- Verify jobq:limit on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.delete_limit', '', 1),
        ('function', 'jobq.hold_key', '', 1),
        ('function', 'jobq.list_limits', '', 1),
        ('function', 'jobq.put_limit', '', 1),
        ('function', 'jobq.release_key', '', 1),
        ('function', 'jobq_private.awaited_gates', '', 1),
        ('function', 'jobq_private.bar_lanes', '', 1),
        ('function', 'jobq_private.barriers', '', 1),
        ('function', 'jobq_private.call_full_lanes', '', 1),
        ('function', 'jobq_private.call_key_lanes', '', 1),
        ('function', 'jobq_private.call_lane', '', 1),
        ('function', 'jobq_private.call_lanes', '', 1),
        ('function', 'jobq_private.call_left_lanes', '', 1),
        ('function', 'jobq_private.charge_gates', '', 1),
        ('function', 'jobq_private.charge_job', '', 1),
        ('function', 'jobq_private.charge_queue', '', 1),
        ('function', 'jobq_private.check_concurrency_key', '', 1),
        ('function', 'jobq_private.check_concurrency_keys', '', 1),
        ('function', 'jobq_private.claim_lanes', '', 1),
        ('function', 'jobq_private.close_key_lanes', '', 1),
        ('function', 'jobq_private.close_lanes', '', 1),
        ('function', 'jobq_private.divert_jobs', '', 1),
        ('function', 'jobq_private.enter_queue', '', 1),
        ('function', 'jobq_private.explain_barriers', '', 1),
        ('function', 'jobq_private.find_place', '', 1),
        ('function', 'jobq_private.follow_gates', '', 1),
        ('function', 'jobq_private.follow_kind_limits', '', 1),
        ('function', 'jobq_private.follow_limits', '', 1),
        ('function', 'jobq_private.free_places', '', 1),
        ('function', 'jobq_private.gate_id', '', 1),
        ('function', 'jobq_private.gate_room', '', 1),
        ('function', 'jobq_private.gated_lanes', '', 1),
        ('function', 'jobq_private.has_counted', '', 1),
        ('function', 'jobq_private.hold_after_dead', '', 1),
        ('function', 'jobq_private.hold_gates', '', 1),
        ('function', 'jobq_private.hold_ruled_lanes', '', 1),
        ('function', 'jobq_private.job_gates', '', 1),
        ('function', 'jobq_private.key_gate_id', '', 1),
        ('function', 'jobq_private.key_room', '', 1),
        ('function', 'jobq_private.key_rule', '', 1),
        ('function', 'jobq_private.kind_lane_id', '', 1),
        ('function', 'jobq_private.lane_bounds', '', 1),
        ('function', 'jobq_private.lane_ceiling', '', 1),
        ('function', 'jobq_private.lane_counts', '', 1),
        ('function', 'jobq_private.lane_floor', '', 1),
        ('function', 'jobq_private.lane_heads', '', 1),
        ('function', 'jobq_private.lane_id', '', 1),
        ('function', 'jobq_private.lane_of', '', 1),
        ('function', 'jobq_private.lane_rule', '', 1),
        ('function', 'jobq_private.lane_rules', '', 1),
        ('function', 'jobq_private.lane_slot', '', 1),
        ('function', 'jobq_private.leave_lane', '', 1),
        ('function', 'jobq_private.leave_lanes', '', 1),
        ('function', 'jobq_private.limits_changed', '', 1),
        ('function', 'jobq_private.lock_lanes', '', 1),
        ('function', 'jobq_private.look_at', '', 1),
        ('function', 'jobq_private.next_lane', '', 1),
        ('function', 'jobq_private.next_level', '', 1),
        ('function', 'jobq_private.note_use', '', 1),
        ('function', 'jobq_private.number_running', '', 1),
        ('function', 'jobq_private.open_called_lanes', '', 1),
        ('function', 'jobq_private.open_lanes', '', 1),
        ('function', 'jobq_private.pass_keys', '', 1),
        ('function', 'jobq_private.pass_kinds', '', 1),
        ('function', 'jobq_private.pick_lanes', '', 1),
        ('function', 'jobq_private.pull_back', '', 1),
        ('function', 'jobq_private.queue_opens_at', '', 1),
        ('function', 'jobq_private.reopen_lanes', '', 1),
        ('function', 'jobq_private.see_limits', '', 1),
        ('function', 'jobq_private.spacing', '', 1),
        ('function', 'jobq_private.spent', '', 1),
        ('function', 'jobq_private.store_hold', '', 1),
        ('function', 'jobq_private.take_from_lanes', '', 1),
        ('function', 'jobq_private.take_heads', '', 1),
        ('function', 'jobq_private.take_place', '', 1),
        ('function', 'jobq_private.token_at', '', 1),
        ('function', 'jobq_private.tokens', '', 1),
        ('function', 'jobq_private.uncounted', '', 1),
        ('function', 'jobq_private.wait_for_gates', '', 1),
        ('function', 'jobq_private.waiting_queues', '', 1),
        ('function', 'jobq_private.whole_lanes', '', 1),
        ('trigger', 'jobq_private.gate', 'kind_gate_birth', 1),
        ('trigger', 'jobq_private.gate', 'kind_gate_end', 1),
        ('trigger', 'jobq_private.key_limit', 'key_limits', 1),
        ('trigger', 'jobq_private.kind', 'kind_birth_limits', 1),
        ('trigger', 'jobq_private.kind', 'kind_end_limits', 1),
        ('trigger', 'jobq_private.kind', 'kind_limits', 1),
        ('trigger', 'jobq_private.kind_gate', 'in_use_gates', 1),
        ('trigger', 'jobq_private.lane_call', 'in_use_lanes', 1),
        ('trigger', 'jobq_private.look', 'in_use_looks', 1),
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
