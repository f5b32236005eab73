-- Purpose: Changes global defaults. Omitted arguments keep their values.
-- Invariant: existing jobs keep their settings. Raises: 22023, 42501.
-- Argument retention: how long finished jobs are kept, 1 day to 36500 days. Below key_retention
-- (30 days) it is refused: pass both.
-- Argument dedup: the strategy for jobs with a dedup_key: skip, enqueue or replace.
-- Example: select jobq.configure(max_attempts => 10, retention => '90 days');
create or replace function jobq.configure(
    priority integer default null, max_attempts integer default null,
    timeout interval default null, lease interval default null, retry_preset text default null,
    dedup text default null, reuse_key_after_failure boolean default null,
    max_expiries integer default null, max_payload_bytes integer default null,
    max_payload_depth integer default null, retention interval default null,
    key_retention interval default null, redact_emails boolean default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _before constant jsonb := (select to_jsonb(g) from jobq_private.setting as g);
    _violated text;
begin
    update jobq_private.setting as g
    set
        priority = coalesce(configure.priority, g.priority),
        max_attempts = coalesce(configure.max_attempts, g.max_attempts),
        timeout = coalesce(configure.timeout, g.timeout),
        lease = coalesce(configure.lease, g.lease),
        retry_preset = coalesce(configure.retry_preset, g.retry_preset),
        dedup = coalesce(configure.dedup, g.dedup),
        reuse_key_after_failure = coalesce(
            configure.reuse_key_after_failure, g.reuse_key_after_failure
        ),
        max_expiries = coalesce(configure.max_expiries, g.max_expiries),
        max_payload_bytes = coalesce(configure.max_payload_bytes, g.max_payload_bytes),
        max_payload_depth = coalesce(configure.max_payload_depth, g.max_payload_depth),
        retention = coalesce(configure.retention, g.retention),
        key_retention = coalesce(configure.key_retention, g.key_retention),
        redact_emails = coalesce(configure.redact_emails, g.redact_emails);
    perform jobq_private.audit_settings('configure', 'settings', _before, (
        select to_jsonb(g) from jobq_private.setting as g
    ));
exception
    when check_violation or foreign_key_violation or numeric_value_out_of_range then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
    when insufficient_privilege then
        perform jobq_private.raise_error('ALL_QUEUES_NEEDED', 'settings');
end
$$;
grant execute on function jobq.configure to jobq_operator;
