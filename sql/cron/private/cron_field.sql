-- Purpose: read a field of a cron expression that holds numbers, ranges and steps.
-- Invariant: pure; no SET, since each field costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_field(field text, list text)
returns bigint
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _bits bigint := 0;
    _item text;
begin
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        _bits := _bits | jobq_private.cron_range(field, _item);
    end loop;
    return _bits;
end
$$;

revoke all on function jobq_private.cron_field from public;

comment on function jobq_private.cron_field is
'Returns the numbers that a field of a cron expression names, as bits.';
