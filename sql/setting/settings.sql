-- Purpose: show what would hold for a job of this kind in this queue.
-- Invariant: the same resolution that enqueue() uses. Its plan is priced so high that
-- PostgreSQL would compile it, for a second, before 18. Raises: nothing.
-- Argument kind: the kind; null means one that nobody has declared.
-- Argument queue: the queue; null means the kind's, else default.
-- Returns: a JSON object: the limits of a kind have kind_ before their names; queue, priority, max_attempts, timeout, lease, dedup,
-- max_depth, retry_strategy, retention, run and what else holds; every default of
-- configure() is there.
-- Example: select jobq.settings('send_email') ->> 'max_attempts';
create or replace function jobq.settings(kind text default null, queue text default null)
returns jsonb
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
    select to_jsonb(s) - '{delivery_version,is_limited,keep}'::text[] || to_jsonb(r)
    || jobq_private.limits_for(settings.kind, s.queue) || jsonb_build_object(
        'max_expiries', g.max_expiries, 'retention', g.retention,
        'keep_succeeded', least(s.keep[1], g.retention),
        'keep_dead', least(s.keep[2], g.retention),
        'keep_cancelled', least(s.keep[3], g.retention),
        'key_retention', g.key_retention, 'redact_emails', g.redact_emails,
        'run', (select k.run from jobq_private.kind as k where k.kind = settings.kind)
    )
    from jobq_private.settings_for(kind, queue) as s
    cross join jobq_private.retry_policy_for(kind, queue, s.delivery_version) as r
    cross join jobq_private.setting as g
$$;

revoke all on function jobq.settings from public;
grant execute on function jobq.settings
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.settings is
'Shows what holds for a job of this kind in this queue: kind, else queue, else default.';
