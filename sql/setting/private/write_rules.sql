-- Purpose: write down as a constant whether any kind, or any queue, says something that enqueue()
-- goes by.
-- Invariant: only at first, and when one does; under the lock of the one row of setting, so never
-- twice at once. Raises: nothing.
create or replace function jobq_private.write_rules(relation text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _name constant text := format('has_%s_rules', write_rules.relation);
    _is_ruled constant boolean := case write_rules.relation
        when 'kind' then exists (
            select from jobq_private.kind as k
            where num_nonnulls(
                k.queue, k.priority, k.max_attempts, k.timeout, k.lease, k.concurrency_key,
                k.max_running, k.rate_limit, k.keep, k.payload_schema, k.json_schema,
                k.delivery_version
            ) > 0
        )
        else exists (
            select from jobq_private.queue as q
            where num_nonnulls(
                q.priority, q.max_attempts, q.timeout, q.lease, q.max_depth
            ) > 0
        )
    end;
begin
    if _is_ruled or to_regprocedure(format('jobq_private.%s()', _name)) is null then
        perform from jobq_private.setting for update;
        execute format(
            'create or replace function jobq_private.%I() returns boolean '
            'language sql stable parallel safe security invoker as %L',
            _name, 'select ' || _is_ruled
        );
    end if;
end
$$;

revoke all on function jobq_private.write_rules from public;

comment on function jobq_private.write_rules is
'Writes down whether any kind, or any queue, says something that enqueue() goes by.';
