-- Verify jobq:job on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.cancel', ''),
        ('function', 'jobq.enqueue', ''),
        ('function', 'jobq.enqueue_many', ''),
        ('function', 'jobq.get_job', ''),
        ('function', 'jobq.redrive', ''),
        ('function', 'jobq.wait', ''),
        ('function', 'jobq_private.archive_birth', ''),
        ('function', 'jobq_private.archive_immutable', ''),
        ('function', 'jobq_private.archive_jobs', ''),
        ('function', 'jobq_private.bar_redrives', ''),
        ('function', 'jobq_private.check_queue_depth', ''),
        ('function', 'jobq_private.drop_partitions', ''),
        ('function', 'jobq_private.expire_jobs', ''),
        ('function', 'jobq_private.follow_endings', ''),
        ('function', 'jobq_private.has_huge_number', ''),
        ('function', 'jobq_private.id_time', ''),
        ('function', 'jobq_private.insert_jobs', ''),
        ('function', 'jobq_private.invalid_option', ''),
        ('function', 'jobq_private.is_key_free', ''),
        ('function', 'jobq_private.is_legal', ''),
        ('function', 'jobq_private.is_small', ''),
        ('function', 'jobq_private.job_birth', ''),
        ('function', 'jobq_private.job_end', ''),
        ('function', 'jobq_private.job_identity', ''),
        ('function', 'jobq_private.job_start', ''),
        ('function', 'jobq_private.job_transition', ''),
        ('function', 'jobq_private.key_paths', ''),
        ('function', 'jobq_private.lock_job', ''),
        ('function', 'jobq_private.make_partition', ''),
        ('function', 'jobq_private.make_partitions', ''),
        ('function', 'jobq_private.new_id', ''),
        ('function', 'jobq_private.new_job_problem', ''),
        ('function', 'jobq_private.on_end', ''),
        ('function', 'jobq_private.on_forget', ''),
        ('function', 'jobq_private.on_move', ''),
        ('function', 'jobq_private.on_redrive', ''),
        ('function', 'jobq_private.on_start', ''),
        ('function', 'jobq_private.on_store', ''),
        ('function', 'jobq_private.payload_key', ''),
        ('function', 'jobq_private.payload_problem', ''),
        ('function', 'jobq_private.prune_jobs', ''),
        ('function', 'jobq_private.put_off', ''),
        ('function', 'jobq_private.read_records', ''),
        ('function', 'jobq_private.redrive_jobs', ''),
        ('function', 'jobq_private.refuse_missing', ''),
        ('function', 'jobq_private.refuse_redrive', ''),
        ('function', 'jobq_private.stamp_start', ''),
        ('function', 'jobq_private.stamp_wait', ''),
        ('function', 'jobq_private.store_dedup_job', ''),
        ('function', 'jobq_private.store_jobs', ''),
        ('function', 'jobq_private.store_keyed_jobs', ''),
        ('function', 'jobq_private.take_idempotency_keys', ''),
        ('function', 'jobq_private.tell_ended', ''),
        ('function', 'jobq_private.transition_slot', ''),
        ('function', 'jobq_private.value_problem', ''),
        ('trigger', 'jobq_private.job', 'job_birth'),
        ('trigger', 'jobq_private.job', 'job_end'),
        ('trigger', 'jobq_private.job', 'job_identity'),
        ('trigger', 'jobq_private.job', 'job_start'),
        ('trigger', 'jobq_private.job', 'job_transition'),
        ('trigger', 'jobq_private.job_archive', 'archive_birth'),
        ('trigger', 'jobq_private.job_archive', 'archive_immutable'),
        ('trigger', 'jobq_private.transition', 'transition_slot'),
        ('view', 'jobq.job', '')
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
