-- Verify jobq:workflow on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        ('function', 'jobq.batch_status', '', 1),
        ('function', 'jobq.cancel_batch', '', 1),
        ('function', 'jobq.cancel_tree', '', 1),
        ('function', 'jobq.emit', '', 1),
        ('function', 'jobq.enqueue_graph', '', 1),
        ('function', 'jobq.list_inputs', '', 1),
        ('function', 'jobq.list_steps', '', 1),
        ('function', 'jobq.open_batch', '', 1),
        ('function', 'jobq.redrive_tree', '', 1),
        ('function', 'jobq.save_step', '', 1),
        ('function', 'jobq.save_steps', '', 1),
        ('function', 'jobq.seal_batch', '', 1),
        ('function', 'jobq.show_graph', '', 1),
        ('function', 'jobq.signal', '', 1),
        ('function', 'jobq.wait_for', '', 1),
        ('function', 'jobq_private.add_graph', '', 1),
        ('function', 'jobq_private.arrow_ends', '', 1),
        ('function', 'jobq_private.as_node', '', 1),
        ('function', 'jobq_private.await_parents', '', 1),
        ('function', 'jobq_private.call_back', '', 1),
        ('function', 'jobq_private.cancel_children', '', 1),
        ('function', 'jobq_private.check_arrows', '', 1),
        ('function', 'jobq_private.check_event', '', 1),
        ('function', 'jobq_private.check_graph', '', 1),
        ('function', 'jobq_private.check_steps', '', 1),
        ('function', 'jobq_private.close_edges', '', 1),
        ('function', 'jobq_private.cycle_among', '', 1),
        ('function', 'jobq_private.edges_to_settle', '', 1),
        ('function', 'jobq_private.end_looks', '', 1),
        ('function', 'jobq_private.ends_of', '', 1),
        ('function', 'jobq_private.enter_batches', '', 1),
        ('function', 'jobq_private.explain_blocked', '', 1),
        ('function', 'jobq_private.find_batch', '', 1),
        ('function', 'jobq_private.follow', '', 1),
        ('function', 'jobq_private.follows', '', 1),
        ('function', 'jobq_private.forget_timeouts', '', 1),
        ('function', 'jobq_private.goes_on', '', 1),
        ('function', 'jobq_private.graph_arrows', '', 1),
        ('function', 'jobq_private.graph_edge_documents', '', 1),
        ('function', 'jobq_private.graph_id', '', 1),
        ('function', 'jobq_private.graph_node_documents', '', 1),
        ('function', 'jobq_private.graph_nodes', '', 1),
        ('function', 'jobq_private.graph_others', '', 1),
        ('function', 'jobq_private.hang_graph', '', 1),
        ('function', 'jobq_private.hold_batches', '', 1),
        ('function', 'jobq_private.hold_children', '', 1),
        ('function', 'jobq_private.holders', '', 1),
        ('function', 'jobq_private.holders_among', '', 1),
        ('function', 'jobq_private.is_batch_due', '', 1),
        ('function', 'jobq_private.join_alone', '', 1),
        ('function', 'jobq_private.leave_looks', '', 1),
        ('function', 'jobq_private.look_again', '', 1),
        ('function', 'jobq_private.needed_jobs', '', 1),
        ('function', 'jobq_private.needed_until', '', 1),
        ('function', 'jobq_private.node_jobs', '', 1),
        ('function', 'jobq_private.prune_edges', '', 1),
        ('function', 'jobq_private.prune_nodes', '', 1),
        ('function', 'jobq_private.prune_workflows', '', 1),
        ('function', 'jobq_private.release_children', '', 1),
        ('function', 'jobq_private.release_waiters', '', 1),
        ('function', 'jobq_private.resolve', '', 1),
        ('function', 'jobq_private.settle_batches', '', 1),
        ('function', 'jobq_private.settle_edges', '', 1),
        ('function', 'jobq_private.settle_wait', '', 1),
        ('function', 'jobq_private.state_of', '', 1),
        ('function', 'jobq_private.store_event', '', 1),
        ('function', 'jobq_private.store_nodes', '', 1),
        ('function', 'jobq_private.tree', '', 1),
        ('function', 'jobq_private.unsettled_children', '', 1),
        ('function', 'jobq_private.unsettled_parents', '', 1),
        ('function', 'jobq_private.wait_again', '', 1),
        ('function', 'jobq_private.worked_queues', '', 1)
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
