-- Purpose: Resumes claims of jobs of a kind.
-- Invariant: resuming a kind that is not paused changes nothing. Raises: 22004, 42501.
-- Example: select jobq.resume_kind('send_email');
create or replace function jobq.resume_kind(kind text)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    select jobq_private.check_given('kind', num_nulls(resume_kind.kind));
    select jobq_private.end_pause(resume_kind.kind, 'resume_kind')
$$;
grant execute on function jobq.resume_kind to jobq_operator;
