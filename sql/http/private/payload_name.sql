-- Purpose: what a payload is called in a vocabulary: payload in that of kinds, input in that
-- of endpoints, which null means.
-- Invariant: a constant for each. Raises: 22023.
create or replace function jobq_private.payload_name(vocabulary text)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if vocabulary not in ('kind', 'endpoint') then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'vocabulary must be kind or endpoint');
    end if;
    return case vocabulary when 'kind' then 'payload' else 'input' end;
end
$$;

revoke all on function jobq_private.payload_name from public;

comment on function jobq_private.payload_name is
'What a payload is called in a vocabulary: payload or input.';
