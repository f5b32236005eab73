-- Purpose: make a definition the active one of its name: if it differs, create a new version that
-- replaces the old one. With keeps, an active version stays, even if it differs.
-- Invariant: writers of a name lock the row of its newest version, as tick() does, so a slot
-- belongs to one version. Unique keys decide between callers that see no version, or one that is
-- retired meanwhile; they then read again with a new snapshot. Locks are "no key update", because
-- a caller may hold an older version that foreign keys refer to. A new version with the same
-- timing continues at the next slot, otherwise at its own first slot that has not fired. A pause
-- stays. Refuses a name of schedules that the caller may not see.
-- Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ009.
create or replace function jobq_private.schedule_declare(
    given jobq_private.schedule, keeps boolean, out schedule_id uuid, out created boolean
)
language plpgsql as $$
#variable_conflict use_column
declare
    _not_declared constant text[] := '{
        schedule_id, version, previous_version_id, replaced_by_id, status, parsed, next_run_at,
        awaited_job_id, last_tick_at, paused_at, pause_reason, retry_at, failure, login, region,
        created_at, retired_at
    }'::text[];
    _new jobq_private.schedule := jobq_private.schedule_check(given);
    _old jobq_private.schedule;
begin
    for _try in 1 .. 20 loop
        select s.* into _old
        from jobq_private.schedule as s
        where s.name = _new.name
        order by s.version desc
        limit 1
        for no key update;
        if _old.status <> 'retired' and (
            schedule_declare.keeps
            or to_jsonb(_old) - _not_declared = to_jsonb(_new) - _not_declared
        ) then
            schedule_id := _old.schedule_id;
            created := false;
            return;
        end if;

        _new := jobq_private.schedule_succeed(_new, _old);
        update jobq_private.schedule as s
        set
            status = 'retired', retired_at = now(), next_run_at = null,
            awaited_job_id = null
        where s.schedule_id = _old.schedule_id and s.status <> 'retired';
        insert into jobq_private.schedule select _new.* on conflict do nothing;
        created := found;
        exit when created;
    end loop;
    perform jobq_private.check_problem('DEFINITION_EXISTS', case
        when not created then 'schedule ' || _new.name
    end);
    update jobq_private.schedule as s
    set replaced_by_id = _new.schedule_id
    where s.schedule_id = _old.schedule_id;
    schedule_id := _new.schedule_id;
    -- A sleeping worker does not know when the new version is due.
    perform jobq_private.notify('jobq', '*');
    perform jobq_private.record_audit(
        'put_schedule', _new.name, 'version ' || _new.version
    );
end
$$;
