-- Purpose: whether a JSON value holds a number beyond the range of a double, or a zero with more
-- than 400 decimals: jsonb stores 1e131071 in nine characters, but readers of JSON refuse it, and
-- as text it has 131,073.
create or replace function jobq_private.has_huge_number(value jsonb)
returns boolean language sql immutable as $$
    select exists (
        select from jsonb_array_elements(jsonb_path_query_array(
            value,
            'strict $.** ? (@ > -2.5e-324 && @ < 2.5e-324 || @ >= 1.8e308 || @ <= -1.8e308)'
        )) as n (number)
        where n.number <> '0' or scale(n.number::numeric) > 400
    )
$$;
