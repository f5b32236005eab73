-- Verify jobq:workflow on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.answer', ''),
        ('function', 'jobq.append', ''),
        ('function', 'jobq.ask', ''),
        ('function', 'jobq.await_stream', ''),
        ('function', 'jobq.call_children', ''),
        ('function', 'jobq.cancel_batch', ''),
        ('function', 'jobq.cancel_tree', ''),
        ('function', 'jobq.emit', ''),
        ('function', 'jobq.enqueue_graph', ''),
        ('function', 'jobq.fork', ''),
        ('function', 'jobq.list_steps', ''),
        ('function', 'jobq.list_streams', ''),
        ('function', 'jobq.list_waits', ''),
        ('function', 'jobq.open_batch', ''),
        ('function', 'jobq.publish', ''),
        ('function', 'jobq.read_stream', ''),
        ('function', 'jobq.redrive_tree', ''),
        ('function', 'jobq.save_step', ''),
        ('function', 'jobq.seal_batch', ''),
        ('function', 'jobq.send_message', ''),
        ('function', 'jobq.signal', ''),
        ('function', 'jobq.start_children', ''),
        ('function', 'jobq.subscribe', ''),
        ('function', 'jobq.unsubscribe', ''),
        ('function', 'jobq.wait_any', ''),
        ('function', 'jobq.wait_for', ''),
        ('function', 'jobq_internal.append_many', ''),
        ('function', 'jobq_internal.batch_status', ''),
        ('function', 'jobq_internal.call_many', ''),
        ('function', 'jobq_internal.list_inputs', ''),
        ('function', 'jobq_internal.list_subscriptions', ''),
        ('function', 'jobq_internal.read_steps', ''),
        ('function', 'jobq_internal.read_streams', ''),
        ('function', 'jobq_internal.save_steps', ''),
        ('function', 'jobq_private.add_graph', ''),
        ('function', 'jobq_private.announce_jobs', ''),
        ('function', 'jobq_private.arrow_ends', ''),
        ('function', 'jobq_private.attach_graph', ''),
        ('function', 'jobq_private.attach_jobs', ''),
        ('function', 'jobq_private.cancel_children', ''),
        ('function', 'jobq_private.cancel_jobs', ''),
        ('function', 'jobq_private.check_arrows', ''),
        ('function', 'jobq_private.check_event', ''),
        ('function', 'jobq_private.check_graph', ''),
        ('function', 'jobq_private.check_new_jobs', ''),
        ('function', 'jobq_private.child_end', ''),
        ('function', 'jobq_private.close_edges', ''),
        ('function', 'jobq_private.copy_of', ''),
        ('function', 'jobq_private.end_edges', ''),
        ('function', 'jobq_private.ended_job', ''),
        ('function', 'jobq_private.ends_of', ''),
        ('function', 'jobq_private.find_batch', ''),
        ('function', 'jobq_private.follow_redriven', ''),
        ('function', 'jobq_private.graph_id', ''),
        ('function', 'jobq_private.graph_links', ''),
        ('function', 'jobq_private.graph_nodes', ''),
        ('function', 'jobq_private.hold_children', ''),
        ('function', 'jobq_private.id_floor', ''),
        ('function', 'jobq_private.join_batches', ''),
        ('function', 'jobq_private.message_event', ''),
        ('function', 'jobq_private.needed_jobs', ''),
        ('function', 'jobq_private.needed_until', ''),
        ('function', 'jobq_private.node_jobs', ''),
        ('function', 'jobq_private.pending_due', ''),
        ('function', 'jobq_private.prune_workflows', ''),
        ('function', 'jobq_private.read_calls', ''),
        ('function', 'jobq_private.refuse_answer', ''),
        ('function', 'jobq_private.release_waiters', ''),
        ('function', 'jobq_private.resolve', ''),
        ('function', 'jobq_private.run_callback', ''),
        ('function', 'jobq_private.send_dead_letter', ''),
        ('function', 'jobq_private.settle_batch', ''),
        ('function', 'jobq_private.settle_calls', ''),
        ('function', 'jobq_private.settle_edges', ''),
        ('function', 'jobq_private.settle_wait', ''),
        ('function', 'jobq_private.start_calls', ''),
        ('function', 'jobq_private.state_of', ''),
        ('function', 'jobq_private.store_event', ''),
        ('function', 'jobq_private.store_nodes', ''),
        ('function', 'jobq_private.tree', ''),
        ('function', 'jobq_private.unsettled', ''),
        ('function', 'jobq_private.wait_again', ''),
        ('function', 'jobq_private.wait_events', ''),
        ('trigger', 'jobq_private.job_archive', 'dead_letter'),
        ('view', 'jobq.question', '')
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
