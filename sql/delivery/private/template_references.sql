-- Purpose: what the templates of an endpoint's spec refer to: field, namespace, path.
-- Invariant: a reference that cannot be read has no namespace; names of members are no
-- templates; sign_with names a secret without braces. Raises: nothing.
create or replace function jobq_private.template_references(spec jsonb)
returns table (field text, namespace text, path text, written text)
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select distinct
        s.key,
        substring(m.found[1] from '^\s*(input|config|secret)\.[\w-]+(?:\.[\w-]+)*\s*$'),
        substring(m.found[1] from '^\s*(?:input|config|secret)\.([\w-]+(?:\.[\w-]+)*)\s*$'),
        format('{{%s}}', m.found[1])
    from jsonb_each(template_references.spec) as s
    cross join lateral jsonb_path_query(
        s.value, 'strict $.** ? (@.type() == "string")'
    ) as t (text)
    cross join lateral regexp_matches(t.text #>> '{}', '\{\{(.*?)\}\}', 'g') as m (found)
    union
    select 'sign_with', 'secret', template_references.spec ->> 'sign_with',
        template_references.spec ->> 'sign_with'
    where template_references.spec ? 'sign_with';
end
$$;

revoke all on function jobq_private.template_references from public;

comment on function jobq_private.template_references is
'Returns what the templates of an endpoint''s spec refer to.';
