-- Purpose: the dedup key that a payload has at these paths; null if nothing is there. The empty
-- path means the whole payload. A key that is too long is replaced by its hash.
create or replace function jobq_private.payload_key(payload jsonb, paths text[])
returns text language plpgsql stable as $$
declare
    _key text;
begin
    select nullif(case
        when array_ndims(paths) = 2
        then case when count(v.value) > 0 then jsonb_agg(v.value order by p.ordinal)::text end
        else min(payload #>> p.path)
    end, '')
    into _key
    from jobq_private.key_paths(paths) as p
    cross join lateral (select nullif(payload #> p.path, 'null')) as v (value);
    return case
        when length(_key) > 512 then 'sha256:' || encode(sha256(convert_to(_key, 'UTF8')), 'hex')
        else _key
    end;
end
$$;
