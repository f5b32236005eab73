-- Purpose: write the global defaults down as the constants of defaults().
-- Invariant: called under the lock of the one row of setting, so never twice at once; what was
-- planned with the old ones is planned anew. Raises: nothing.
create or replace function jobq_private.write_defaults()
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set intervalstyle = postgres
as $$
begin
    execute format(
        'create or replace function jobq_private.defaults() returns jobq_private.settings '
        'language sql stable parallel safe security invoker as %L', (
            select format(
                'select (''default'', %L, %L, interval %L, interval %L, %L, %L, null, null, '
                '%L, %L, null, null, null, false, interval ''10 s'', null, null)'
                '::jobq_private.settings',
                g.priority, g.max_attempts, g.timeout, g.lease, g.dedup,
                g.reuse_key_after_failure, g.max_payload_bytes, g.max_payload_depth
            )
            from jobq_private.setting as g
        )
    );
end
$$;

revoke all on function jobq_private.write_defaults from public;

comment on function jobq_private.write_defaults is
'Writes the global defaults down as constants.';
