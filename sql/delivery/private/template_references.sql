-- Purpose: the references in the templates of an endpoint's spec: field, namespace,
-- path, and whether there is a default.
-- Invariant: an unreadable reference, and unbalanced braces, have no namespace, except
-- }} that closes JSON braces before it. Braces in the name of a member, where they are
-- not allowed, have the namespace name. sign_with names a secret without braces.
create or replace function jobq_private.template_references(spec jsonb)
returns table (
    field text, namespace text, path text, written text, is_optional boolean
)
language plpgsql immutable set standard_conforming_strings = on as $$
begin
    return query
    with texts as materialized (
        select s.key as field, t.text #>> '{}' as text
        from jsonb_each(template_references.spec) as s
        cross join lateral jsonb_path_query(
            s.value, 'strict $.** ? (@.type() == "string")'
        ) as t (text)
    )
    select distinct
        t.field, r.parts[1], ltrim(r.parts[2], '.'), format('{{%s}}', m.found[1]),
        r.parts[3] is not null
    from texts as t
    cross join lateral regexp_matches(t.text, '\{\{(.*?)\}\}', 'g') as m (found)
    left join lateral regexp_match(m.found[1],
        '^\s*(input|config|secret|job)((?:\.[\w-]+)*)'
        || '\s*(?:\?\?\s*("[^"\\]*"|-?\d+(?:\.\d+)?|true|false|null|\[\])\s*)?$'
    ) as r (parts) on r.parts[2] <> '' or r.parts[1] = 'input'
    union
    select t.field, null, null, m.found[1], false
    from texts as t
    cross join lateral regexp_replace(t.text, '\{\{.*?\}\}', ' ', 'g') as p (rest)
    cross join lateral regexp_match(p.rest, case
        when p.rest ~ '\{\{' then '\{\{.{0,60}'
        when regexp_count(p.rest, '\{') < regexp_count(p.rest, '\}') then '.{0,60}\}\}'
    end) as m (found)
    where m.found is not null
    union
    select s.key, 'name', null, n.name #>> '{}', false
    from jsonb_each(template_references.spec) as s
    cross join lateral jsonb_path_query(
        s.value, 'strict $.** ? (@.type() == "object").keyvalue().key'
    ) as n (name)
    where n.name #>> '{}' ~ '\{\{'
    union
    select 'sign_with', 'secret', t.text, t.text, false
    from texts as t
    where t.field = 'sign_with';
end
$$;
