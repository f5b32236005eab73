-- Deploy jobq:audit to pg
-- Made by sql/snapshot.py from sql/audit/: edit that.
begin;
set local role jobq_owner;

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

-- Purpose: what has been noted stays.
-- Invariant: no update, delete or truncate, by anybody; the owner could drop the trigger,
-- but nobody logs in as the owner. Raises: JQ002.
create or replace function jobq_private.guard_audit()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('IMMUTABLE', 'audit rows are only ever added');
    return null;
end
$$;

revoke all on function jobq_private.guard_audit from public;

comment on function jobq_private.guard_audit is
'Refuses every change of the audit but an addition.';

create or replace trigger audit_immutable
before update or delete or truncate on jobq_private.audit
for each statement execute function jobq_private.guard_audit();

-- Purpose: note what a declaration changes: the settings that are another, with their new values.
-- Invariant: nothing where none is, so that a worker that declares its kinds at each start adds
-- no row. Of a row that there was not before those are told that are given. Raises: nothing.
create or replace function jobq_private.audit_settings(
    action text, subject text, before jsonb, after jsonb
)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    insert into jobq_private.audit (action, subject, reason)
    select audit_settings.action, audit_settings.subject, left(c.changes, 512)
    from (
        select string_agg(
            format('%s %s', s.name, coalesce(s.value #>> '{}', 'none')), ', ' order by s.name
        ) as changes
        from jsonb_each(
            audit_settings.after - '{created_at,updated_at}'::text[]
        ) as s (name, value)
        where s.value <> coalesce(audit_settings.before -> s.name, 'null')
    ) as c
    where audit_settings.before is null or c.changes is not null
$$;

revoke all on function jobq_private.audit_settings from public;

comment on function jobq_private.audit_settings is
'Notes the settings that a declaration changes.';

-- Purpose: note what somebody does to a job, a queue, a key or a secret.
-- Invariant: stands or falls with what it notes, being in the same transaction. The actor
-- is the session's user, whom no caller can forge; the application is only what it says.
-- Raises: nothing.
create or replace function jobq_private.record_audit(
    action text, subject text, reason text default null
)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    insert into jobq_private.audit (action, subject, reason)
    values (record_audit.action, record_audit.subject, record_audit.reason)
$$;

revoke all on function jobq_private.record_audit from public;

comment on function jobq_private.record_audit is
'Notes what somebody does to a job, a queue, a key or a secret.';

-- Purpose: say for whom the rest of this transaction acts, so that the audit can tell:
-- a server in the name of its clients, a tool in the name of a person.
-- Invariant: what the log-in says, and nothing depends on it; the audit notes the log-in
-- beside it. Raises: 22004, 22023.
-- Argument name: the person or client in whose name it acts, 1 to 256 characters.
-- Example: select jobq.act_for('alice@example.org');
create or replace function jobq.act_for(name text)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if act_for.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'name');
    elsif length(act_for.name) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'name must have 1 to 256 characters'
        );
    end if;
    perform set_config('jobq.acting_for', act_for.name, true);
end
$$;

revoke all on function jobq.act_for from public;
grant execute on function jobq.act_for
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.act_for is
'Says for whom the rest of the transaction acts; the audit notes it beside the log-in.';

-- Purpose: what operators have done, for operators.
-- Invariant: reads only; the table takes nothing but additions.
-- Column action: what was done: cancel, redrive, pause_queue, put_kind and more.
create or replace view jobq.audit as
select a.audit_id, a.acted_at, a.actor, a.application, a.action, a.subject, a.reason,
    a.acting_for
from jobq_private.audit as a;

revoke all on jobq.audit from public;
grant select on jobq.audit to jobq_operator;

comment on view jobq.audit is
'Who has cancelled or redriven jobs, paused or granted queues, or changed declarations, schedules, keys and secrets, when and why.';

commit;
