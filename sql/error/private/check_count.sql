-- Purpose: raise an error unless an argument is a number in a range. Raises: 22004, 22023.
create or replace function jobq_private.check_count(
    name text, value integer, lowest integer, highest integer
)
returns void language plpgsql stable parallel safe as $$
begin
    perform jobq_private.check_given(name, num_nulls(value));
    perform jobq_private.check_argument(case when value not between lowest and highest
        then format('%s must be from %s to %s', name, lowest, highest) end);
end
$$;
