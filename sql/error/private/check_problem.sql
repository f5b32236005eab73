-- Purpose: raise the error with this code if the caller has found a problem, which is its detail.
-- Raises: the SQLSTATE of the code.
create or replace function jobq_private.check_problem(code text, problem text)
returns void language plpgsql stable parallel safe as $$
begin
    if problem is not null then
        perform jobq_private.raise_error(code, problem);
    end if;
end
$$;
