-- Purpose: have the claims of other sessions begin at the front of a queue, which is the job
-- that this one has locked last, while its transaction is open, and until then.
-- Invariant: a hint, in one number that all sessions see at once: milliseconds (modulo 32768),
-- block, line. Queues whose hashes meet take turns. Hot: its callers pin the search path.
-- Raises: nothing.
create or replace function jobq_private.share_front(
    queue text, front tid, until timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
    _at constant point := front::text::point;
begin
    perform setval(
        format('jobq_private.claim_front_%s', hashtext(queue) & 7)::regclass,
        ((extract(epoch from until) * 1000)::bigint % 32768 << 48)
        | (_at[0]::bigint << 16)
        | _at[1]::bigint
    );
end
$$;

revoke all on function jobq_private.share_front from public;

comment on function jobq_private.share_front is
'Has the claims of other sessions begin where this one has ended.';
