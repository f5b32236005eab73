-- Purpose: a new version of a schedule and its first slot, given the previous version, if any.
-- Invariant: no slot is lost between the versions, and none fires in both: last_tick_at
-- is kept, and a slot that is overdue stays due if the new calendar has it too.
create or replace function jobq_private.schedule_succeed(
    new jobq_private.schedule, old jobq_private.schedule
)
returns jobq_private.schedule language plpgsql as $$
declare
    _next jobq_private.schedule := new;
    _timing constant text[] :=
        '{cron,every,from_completion,time_zone,gap,fold,starts_at,ends_at}'::text[];
    _is_alive constant boolean := coalesce(old.status <> 'retired', false);
    _is_same constant boolean := not exists (
        select from unnest(_timing) as t (name)
        where to_jsonb(new) -> t.name is distinct from to_jsonb(old) -> t.name
    );
begin
    _next.schedule_id := jobq_private.new_id((
        select g.shard_id from jobq_private.setting as g
    ));
    _next.version := coalesce(old.version, 0) + 1;
    _next.previous_version_id := old.schedule_id;
    _next.replaced_by_id := null;
    _next.region := 'default';
    _next.login := session_user;
    _next.retry_at := null;
    _next.failure := null;
    _next.created_at := now();
    _next.retired_at := null;
    _next.status := case when _is_alive then old.status else 'active' end;
    _next.paused_at := case when _is_alive then old.paused_at end;
    _next.pause_reason := case when _is_alive then old.pause_reason end;
    _next.last_tick_at := old.last_tick_at;
    _next.next_run_at := case when _is_alive then old.next_run_at end;
    _next.awaited_job_id := case
        when _is_alive and new.from_completion then old.awaited_job_id
    end;
    if not (_is_alive and _is_same) and _next.awaited_job_id is null then
        _next.next_run_at := jobq_private.schedule_first(_next, case
            when old.status = 'active' and old.next_run_at <= clock_timestamp()
            then old.next_run_at - interval '1 us'
            else clock_timestamp()
        end);
    end if;
    return _next;
end
$$;
