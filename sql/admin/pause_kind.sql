-- Purpose: Pauses claims of jobs of a kind, in all queues. Running jobs continue.
-- Invariant: the kind need not be declared; put_kind() does not end the pause. Raises: 22004,
-- 22023, 42501.
-- Example: select jobq.pause_kind('send_email', 'the provider is down');
create or replace function jobq.pause_kind(kind text, reason text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('kind', num_nulls(pause_kind.kind));
    perform jobq_private.check_argument(case
        when length(pause_kind.kind) not between 1 and 128 or pause_kind.kind = '*'
        then 'kind must have 1 to 128 characters, and must not be *'
        when length(pause_kind.reason) > 512 then 'reason must have at most 512 characters'
    end);
    perform jobq_private.store_pause(pause_kind.kind, 'pause_kind', pause_kind.reason);
exception
    when insufficient_privilege then
        perform jobq_private.raise_error('ALL_QUEUES_NEEDED', 'kind ' || pause_kind.kind);
end
$$;
grant execute on function jobq.pause_kind to jobq_operator;
