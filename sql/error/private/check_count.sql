-- Purpose: raise an error unless an argument is a number in a range.
-- Raises: 22004, 22023.
create or replace function jobq_private.check_count(
    name text, value integer, lowest integer, highest integer
)
returns void
language plpgsql
stable
parallel safe
as $$
begin
    if value is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', name);
    elsif value not between lowest and highest then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', format('%s must be from %s to %s', name, lowest, highest)
        );
    end if;
end
$$;
