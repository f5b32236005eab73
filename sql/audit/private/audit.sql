-- Purpose: note redrives, pauses, grants, and changes of keys, secrets and definitions, whoever
-- makes them and by whatever way. The trigger names the action and the columns of the subject.
-- Of a definition that is put the reason is its version, which list_versions() shows.
-- Invariant: names and states alone are noted, never what a secret or a key is.
-- Raises: nothing.
create or replace function jobq_private.audit_change()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _new constant jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    _row constant jsonb := coalesce(_new, to_jsonb(old));
    _action constant text := case
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

revoke all on function jobq_private.audit_change from public;

comment on function jobq_private.audit_change is
'Notes a change that an operator has made.';

create or replace trigger archive_audit
after update on jobq_private.job_archive
for each row when (new.state in ('queued', 'blocked'))
execute function jobq_private.audit_change('redrive', 'job_id');

create or replace trigger queue_audit
after update on jobq_private.queue
for each row when (new.paused_at is distinct from old.paused_at)
execute function jobq_private.audit_change('queue', 'queue');

create or replace trigger queue_birth_audit
after insert on jobq_private.queue
for each row when (new.paused_at is not null)
execute function jobq_private.audit_change('queue', 'queue');

create or replace trigger api_key_birth_audit
after insert on jobq_private.api_key
for each row execute function jobq_private.audit_change('create_api_key', 'api_key');

create or replace trigger api_key_audit
after update on jobq_private.api_key
for each row when (new.last_used_at is not distinct from old.last_used_at)
execute function jobq_private.audit_change('revoke_api_key', 'api_key');

create or replace trigger secret_audit
after insert or update on jobq_private.secret
for each row execute function jobq_private.audit_change('put_secret', 'secret');

create or replace trigger secret_end_audit
after delete on jobq_private.secret
for each row execute function jobq_private.audit_change('delete_secret', 'secret');

create or replace trigger endpoint_audit
after update on jobq_private.endpoint
for each row when (new.version is distinct from old.version)
execute function jobq_private.audit_change('put_endpoint', 'endpoint');

create or replace trigger endpoint_end_audit
after delete on jobq_private.endpoint
for each row execute function jobq_private.audit_change('delete_endpoint', 'endpoint');

create or replace trigger config_audit
after insert or update on jobq_private.config
for each row execute function jobq_private.audit_change('put_config', 'config');

create or replace trigger config_end_audit
after delete on jobq_private.config
for each row execute function jobq_private.audit_change('delete_config', 'config');

create or replace trigger payload_spec_audit
after insert or update on jobq_private.payload_spec
for each row execute function jobq_private.audit_change('put_payload_spec', 'payload_spec');

create or replace trigger payload_spec_end_audit
after delete on jobq_private.payload_spec
for each row execute function jobq_private.audit_change('delete_payload_spec', 'payload_spec');

create or replace trigger queue_grant_audit
after insert on jobq_private.queue_grant
for each row execute function jobq_private.audit_change(
    'grant_queue', 'grantee', 'privilege', 'queue'
);

create or replace trigger queue_grant_end_audit
after delete on jobq_private.queue_grant
for each row execute function jobq_private.audit_change(
    'revoke_queue', 'grantee', 'privilege', 'queue'
);
