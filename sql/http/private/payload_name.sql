-- Purpose: the name of a payload in a vocabulary: payload in that of kinds, input in
-- that of endpoints, the default.
-- Invariant: a constant for each. Raises: 22023.
create or replace function jobq_private.payload_name(vocabulary text)
returns text
language plpgsql
stable
as $$
begin
    if vocabulary not in ('kind', 'endpoint') then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'vocabulary must be kind or endpoint');
    end if;
    return case vocabulary when 'kind' then 'payload' else 'input' end;
end
$$;
