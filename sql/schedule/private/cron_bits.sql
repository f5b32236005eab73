-- Purpose: the numbers of a list in a field of a cron expression, as bits.
-- Invariant: pure. Raises: JQ009.
create or replace function jobq_private.cron_bits(field integer, list text)
returns bigint
language plpgsql
immutable
as $$
declare
    _bits bigint := 0;
    _item text;
    _number integer;
begin
    foreach _item in array string_to_array(list, ',') loop
        foreach _number in array jobq_private.cron_numbers(field, _item) loop
            _bits := _bits | (1::bigint << _number);
        end loop;
    end loop;
    return _bits;
end
$$;
