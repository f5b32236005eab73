-- Purpose: Resumes claims of jobs of a kind.
-- Invariant: resuming a kind that is not paused changes nothing. Raises: 22004.
-- Example: select jobq.resume_kind('send_email');
create or replace function jobq.resume_kind(kind text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if resume_kind.kind is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'kind');
    end if;
    perform jobq_private.end_pause(resume_kind.kind, 'resume_kind');
end
$$;

grant execute on function jobq.resume_kind to jobq_operator;
