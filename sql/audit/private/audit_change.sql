-- Purpose: record pauses, grants, and changes of keys, secrets and definitions, whoever makes
-- them. The trigger names the action and the columns of the subject; secrets are never recorded.
create or replace function jobq_private.audit_change()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _new constant jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    _row constant jsonb := coalesce(_new, to_jsonb(old));
    _action constant text := case
        when tg_argv[0] in ('put', 'delete') then tg_argv[0] || '_' || (_row ->> 'type')
        when tg_argv[0] <> 'queue' then tg_argv[0]
        when _row ->> 'paused_at' is null then 'resume_queue'
        else 'pause_queue'
    end;
begin
    perform jobq_private.record_audit(
        _action,
        (
            select string_agg(_row ->> c.name, ' ' order by c.n)
            from unnest(tg_argv[1:]) with ordinality as c (name, n)
        ),
        case
            when _action = 'pause_queue' then _row ->> 'pause_reason'
            when _action in ('put_endpoint', 'put_config', 'put_payload_spec')
                then 'version ' || (_row ->> 'version')
        end
    );
    return null;
end
$$;

create or replace trigger queue_audit
after update on jobq_private.queue
for each row when (new.paused_at is distinct from old.paused_at)
execute function jobq_private.audit_change('queue', 'queue');

create or replace trigger queue_birth_audit
after insert on jobq_private.queue
for each row when (new.paused_at is not null)
execute function jobq_private.audit_change('queue', 'queue');
