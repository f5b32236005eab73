-- Verify jobq:grant on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
        values
        ('function', 'jobq.enforce_queue_grants', ''),
        ('function', 'jobq.grant_queue', ''),
        ('function', 'jobq.revoke_queue', ''),
        ('function', 'jobq_internal.list_queue_grants', ''),
        ('function', 'jobq_private.check_author', ''),
        ('function', 'jobq_private.check_queue_grant', ''),
        ('function', 'jobq_private.check_worked', ''),
        ('function', 'jobq_private.copy_kind_queue', ''),
        ('function', 'jobq_private.refuse_job', ''),
        ('function', 'jobq_private.refuse_work', ''),
        ('function', 'jobq_private.worked_queues', ''),
        ('trigger', 'jobq_private.kind', 'kind_queue'),
        ('trigger', 'jobq_private.queue_grant', 'queue_grant_audit'),
        ('trigger', 'jobq_private.queue_grant', 'queue_grant_end_audit'),
        ('view', 'jobq.queue_grant', ''),
        ('view', 'jobq_private.held_queue', '')
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
