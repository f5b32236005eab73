-- Purpose: how many jobs a claim may start in a queue that is limited as a whole.
-- Invariant: locks the queue's limit until the commit; zero while another has it.
-- pass_limits() looks at what the jobs cost.
create or replace function jobq_private.enter_queue(queue text, wanted integer)
returns integer
language plpgsql
as $$
declare
    _scopes constant jobq_private.scope[] := array[row(
        jobq_private.limit_id(queue, null, null), queue, null, null
    )::jobq_private.scope];
begin
    if jobq_private.lock_limits(_scopes, false) = '{}' then
        return 0;
    end if;
    return least(wanted, (
        select r.room from jobq_private.limit_rooms(_scopes, clock_timestamp()) as r
    ));
end
$$;
