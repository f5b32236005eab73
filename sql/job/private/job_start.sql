-- Purpose: refuse an update that sets attempt outside of a claim, because only claims check limits
-- before they start a job.
-- Invariant: each claim sets attempt. The claim is recognized in the call stack, in any language
-- of messages. Raises: JQ002.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.guard_start()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _stack text;
begin
    get diagnostics _stack = pg_context;
    if strpos(_stack, 'jobq.claim(') = 0 and strpos(_stack, 'jobq_internal.claim_calls(') = 0 then
        perform jobq_private.raise_error(
            'IMMUTABLE', 'attempt, previous_state and lease follow from the state'
        );
    end if;
    return null;
end
$$;

create or replace trigger job_start
before update of attempt on jobq_private.job
for each statement execute function jobq_private.guard_start();
