-- Deploy jobq:audit to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: record which settings a declaration changes, with their new values. A repeated
-- declaration adds no row.
create or replace function jobq_private.audit_settings(
    action text, subject text, before jsonb, after jsonb
)
returns void
language sql
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

-- Purpose: record what somebody does to a job, a queue, a key or a secret, in the same
-- transaction. The actor is the session's user, whom no caller can forge.
create or replace function jobq_private.record_audit(
    action text, subject text, reason text default null
)
returns void
language sql
as $$
    insert into jobq_private.audit (action, subject, reason)
    values (record_audit.action, record_audit.subject, record_audit.reason)
$$;

-- Purpose: Who cancelled or redrove jobs, paused or granted queues, or changed
-- declarations, schedules, keys and secrets, when and why.
-- Invariant: reads only; the table accepts only inserts.
-- Column action: the action: cancel, redrive, pause_queue, put_kind and others.
create or replace view jobq.audit as
select a.audit_id, a.acted_at, a.actor, a.application, a.action, a.subject, a.reason,
    a.acting_for
from jobq_private.audit as a;

grant select on jobq.audit to jobq_operator;

comment on view jobq.audit is 'Who cancelled or redrove jobs, paused or granted queues, or changed declarations, schedules, keys and secrets, when and why.';

-- Purpose: record pauses, grants, and changes of keys, secrets and definitions, whoever makes
-- them. The trigger names the action and the columns of the subject; secrets are never recorded.
create or replace function jobq_private.audit_change()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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

-- Purpose: refuse changes of audit rows. The owner could drop the trigger, but nobody logs in as
-- the owner. Raises: JQ002.
create or replace function jobq_private.audit_immutable()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('IMMUTABLE', 'audit rows cannot be changed');
    return null;
end
$$;

create or replace trigger audit_immutable
before update or delete or truncate on jobq_private.audit
for each statement execute function jobq_private.audit_immutable();

commit;
