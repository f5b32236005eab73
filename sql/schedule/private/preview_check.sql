-- Purpose: refuse invalid arguments of a preview.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.preview_check(ticks integer, after timestamptz)
returns void
language plpgsql
stable
parallel safe
as $$
begin
    if num_nulls(ticks, after) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'ticks and after');
    elsif ticks not between 1 and 1000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'ticks must be from 1 to 1000'
        );
    elsif after not between '1900-01-01 UTC' and '9999-01-01 UTC' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after must be from 1900 to 9998'
        );
    end if;
end
$$;
