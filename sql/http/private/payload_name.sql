-- Purpose: the name of a payload in a vocabulary: payload in that of kinds, input in
-- that of endpoints, the default.
-- Invariant: a constant for each. Raises: 22023.
create or replace function jobq_private.payload_name(vocabulary text)
returns text language plpgsql stable as $$
begin
    perform jobq_private.check_argument(case
        when vocabulary not in ('kind', 'endpoint') then 'vocabulary must be kind or endpoint'
    end);
    return case vocabulary when 'kind' then 'payload' else 'input' end;
end
$$;
