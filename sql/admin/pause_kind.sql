-- Purpose: Pauses claims of jobs of a kind, in all queues. Running jobs continue.
-- Invariant: the kind need not be declared; put_kind() does not end the pause. Raises: 22004, 22023.
-- Example: select jobq.pause_kind('send_email', 'the provider is down');
create or replace function jobq.pause_kind(kind text, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if pause_kind.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    elsif length(pause_kind.kind) not between 1 and 128 or pause_kind.kind = '*' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'kind must have 1 to 128 characters, and must not be *'
        );
    end if;
    perform jobq_private.store_pause(pause_kind.kind, pause_kind.reason);
    perform jobq_private.record_audit('pause_kind', pause_kind.kind, pause_kind.reason);
end
$$;

grant execute on function jobq.pause_kind to jobq_operator;
