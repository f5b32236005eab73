-- Purpose: raise an error if any of these arguments is null; the caller counts them.
-- Raises: 22004.
create or replace function jobq_private.check_given(names text, nulls integer)
returns void language plpgsql stable parallel safe as $$
begin
    if nulls > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', names);
    end if;
end
$$;
