-- Purpose: refuse an update that sets attempt outside of a claim, because only claims check
-- limits before they start a job.
-- Invariant: start_jobs() sets attempt. It is recognized in the call stack, in any language of
-- messages. Raises: JQ002.
create or replace function jobq_private.job_start()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _stack text;
begin
    get diagnostics _stack = pg_context;
    if strpos(_stack, 'jobq_private.start_jobs(') = 0 then
        perform jobq_private.raise_error(
            'IMMUTABLE', 'attempt, previous_state and lease follow from the state'
        );
    end if;
    return null;
end
$$;

create or replace trigger job_start
before update of attempt on jobq_private.job
for each statement execute function jobq_private.job_start();
