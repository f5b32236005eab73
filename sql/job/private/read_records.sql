-- Purpose: read records of one type, of which sample is a null, from a JSON array with this name.
-- Invariant: refuses unknown members, so that no misspelt option is ignored, and null payloads,
-- which would read as missing. Raises: 22004, 22023.
create or replace function jobq_private.read_records(
    sample anyelement, name text, documents jsonb, known text[]
)
returns anyarray language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
    _each constant text := rtrim(name, 's') || ' %s: ';
    _ordinal bigint;
    _member text;
    _value jsonb;
begin
    perform jobq_private.check_given(name, num_nulls(documents));
    perform jobq_private.check_argument(case when jsonb_typeof(documents) <> 'array'
        then name || ' must be a JSON array' end);
    perform jobq_private.check_argument((
        select format(_each, e.n) || case
            when e.item @> '{"payload": null}' then 'payload must not be null; the default is {}'
            else format('must be an object with members among %s', known)
        end
        from jsonb_array_elements(documents) with ordinality as e (item, n)
        where jsonb_typeof(e.item) <> 'object' or e.item - known <> '{}'
        or e.item @> '{"payload": null}'
        limit 1
    ));
    begin
        return array(
            select jsonb_populate_record(sample, e.item || jsonb_build_object('ordinal', e.n))
            from jsonb_array_elements(documents) with ordinality as e (item, n)
        );
    exception
        when data_exception then
            null;
    end;
    -- Which member it is takes a subtransaction for each.
    for _ordinal, _member, _value in
        select e.n, m.key, m.value
        from jsonb_array_elements(documents) with ordinality as e (item, n)
        cross join lateral jsonb_each(e.item) as m
        where m.key not in ('payload', 'metadata', 'details')
        order by e.n, m.key
    loop
        begin
            perform jsonb_populate_record(sample, jsonb_build_object(_member, _value));
        exception
            when data_exception then
                perform jobq_private.check_argument(
                    format(_each || '%s: %s', _ordinal, _member, sqlerrm)
                );
        end;
    end loop;
    return null;
end
$$;
