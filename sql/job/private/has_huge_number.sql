-- Purpose: whether a JSON value holds a number beyond the range of a double, or a zero with
-- more than 400 decimals.
-- Invariant: jsonb keeps such numbers (1e131071 and 0e-16383 have nine characters), but readers
-- of JSON refuse the large ones, and with them the whole batch that a worker has claimed, and
-- as text each has up to 131,073 characters. What holds few numbers is searched only where its
-- text is long, and what holds many before its text is made; by concat(), which the planner
-- does not evaluate. Raises: nothing.
create or replace function jobq_private.has_huge_number(value jsonb)
returns boolean
language sql
immutable
parallel safe
as $$
    select (jobq_private.is_wide(value) or octet_length(concat(value)) > 308) and exists (
        select from jsonb_array_elements(jsonb_path_query_array(
            value,
            'strict $.** ? (@ > -2.5e-324 && @ < 2.5e-324 || @ >= 1.8e308 || @ <= -1.8e308)'
        )) as n (number)
        where n.number <> '0' or scale(n.number::numeric) > 400
    )
$$;
