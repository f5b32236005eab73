-- Purpose: JSON without secrets: its texts as redacted_text() returns them, and nothing under a
-- name such as password except numbers and booleans.
create or replace function jobq_private.redacted_json(value jsonb)
returns jsonb language plpgsql stable as $$
begin
    return case jsonb_typeof(value)
        when 'string' then to_jsonb(jobq_private.redacted_text(value #>> '{}'))
        when 'array' then (
            select coalesce(jsonb_agg(jobq_private.redacted_json(e.item) order by e.n), '[]')
            from jsonb_array_elements(value) with ordinality as e (item, n)
        )
        when 'object' then (
            select coalesce(jsonb_object_agg(m.key, case
                when jsonb_typeof(m.item) in ('string', 'array', 'object')
                    and m.key ~* '(pass(word|wd|phrase)|^pass$|pwd|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|authorization|cookie)'
                then '"***"'::jsonb
                else jobq_private.redacted_json(m.item)
            end), '{}')
            from jsonb_each(value) as m (key, item)
        )
        else value
    end;
end
$$;
