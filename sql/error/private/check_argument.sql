-- Purpose: raise an error if the caller has found a problem with an argument. Raises: 22023.
create or replace function jobq_private.check_argument(problem text)
returns void language sql stable parallel safe as $$
    select jobq_private.check_problem('INVALID_ARGUMENT', problem)
$$;
