-- Purpose: write down anew the constants that do not say what the tables say.
-- Invariant: under the lock of the one row of setting, so never twice at once, and read under
-- it; what was planned with the old ones is planned anew. Raises: nothing.
create or replace function jobq_private.write_constants()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _constant record;
    _written bigint := 0;
begin
    perform from jobq_private.setting for update;
    for _constant in select * from jobq_private.constants() as c where not c.is_right loop
        execute format(
            'create or replace function jobq_private.%I() returns %I.%I '
            'language sql stable parallel safe security invoker as %L',
            _constant.name, _constant.schema, _constant.type, _constant.body
        );
        _written := _written + 1;
    end loop;
    return _written;
end
$$;

revoke all on function jobq_private.write_constants from public;

comment on function jobq_private.write_constants is
'Writes the constants that enqueue() goes by anew where they differ from the tables.';
