"""What jobq's schemas hold, as comparable rows."""

from __future__ import annotations

import re

import psycopg

from servers import ROOT

ACL = """(
    select string_agg(format('%s=%s', a.grantee::regrole, a.privilege_type), ' '
        order by a.grantee::regrole::text, a.privilege_type)
    from aclexplode({acl}) as a
)"""

SCHEMA = """(
    'jobq'::regnamespace, 'jobq_http'::regnamespace, 'jobq_internal'::regnamespace,
    'jobq_private'::regnamespace
)"""

QUERY = f"""
select 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid),
    p.proowner::regrole::text, {ACL.format(acl="p.proacl")},
    obj_description(p.oid, 'pg_proc')
from pg_proc as p
where p.pronamespace in {SCHEMA}
union all
select 'relation ' || c.relkind::text, c.oid::regclass::text,
    concat_ws(' ', pg_get_viewdef(c.oid), pg_get_partkeydef(c.oid),
        pg_get_expr(c.relpartbound, c.oid), c.reloptions),
    c.relowner::regrole::text, {ACL.format(acl="c.relacl")},
    obj_description(c.oid, 'pg_class')
from pg_class as c
where c.relnamespace in {SCHEMA} and c.relkind <> 'i'
union all
select 'column', format('%s.%s', a.attrelid::regclass, a.attname),
    concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull,
        a.attidentity, a.attstorage, a.attcompression, a.attcollation::regcollation,
        pg_get_expr(d.adbin, d.adrelid)),
    null, {ACL.format(acl="a.attacl")}, col_description(a.attrelid, a.attnum)
from pg_attribute as a
join pg_class as c on c.oid = a.attrelid
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where c.relnamespace in {SCHEMA} and a.attnum > 0 and not a.attisdropped
union all
select 'index', i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid),
    null, null, obj_description(i.indexrelid, 'pg_class')
from pg_index as i
join pg_class as c on c.oid = i.indrelid
where c.relnamespace in {SCHEMA}
union all
select 'constraint', format('%s.%s', k.conrelid::regclass, k.conname),
    pg_get_constraintdef(k.oid), null, null, obj_description(k.oid, 'pg_constraint')
from pg_constraint as k
where k.connamespace in {SCHEMA}
union all
select 'trigger', format('%s.%s', t.tgrelid::regclass, t.tgname),
    pg_get_triggerdef(t.oid) || t.tgenabled::text, null, null,
    obj_description(t.oid, 'pg_trigger')
from pg_trigger as t
join pg_class as c on c.oid = t.tgrelid
where c.relnamespace in {SCHEMA} and not t.tgisinternal
union all
select 'policy', format('%s.%s', p.polrelid::regclass, p.polname),
    concat_ws(' ', p.polcmd, p.polpermissive, pg_get_expr(p.polqual, p.polrelid),
        pg_get_expr(p.polwithcheck, p.polrelid)), p.polroles::regrole[]::text, null, null
from pg_policy as p
join pg_class as c on c.oid = p.polrelid
where c.relnamespace in {SCHEMA}
union all
select 'type', t.oid::regtype::text, t.typtype::text, t.typowner::regrole::text,
    {ACL.format(acl="t.typacl")}, obj_description(t.oid, 'pg_type')
from pg_type as t
where t.typnamespace in {SCHEMA}
union all
select 'schema', n.nspname, null, n.nspowner::regrole::text,
    {ACL.format(acl="n.nspacl")}, obj_description(n.oid, 'pg_namespace')
from pg_namespace as n
where n.oid in {SCHEMA}
union all
select 'default privileges',
    d.defaclnamespace::regnamespace::text || d.defaclobjtype::text, null,
    d.defaclrole::regrole::text, {ACL.format(acl="d.defaclacl")}, null
from pg_default_acl as d
"""

SCHEMAS = {
    name: schema
    for path in (ROOT / "sql").glob("*/*.sql")
    for schema, name in re.findall(
        r"^create or replace function (\w+)\.(\w+)", path.read_text(), re.MULTILINE
    )
}


def qualified(function: str) -> str:
    """Return a public function's name with its schema."""
    return f"{SCHEMAS.get(function, 'jobq')}.{function}"


Row = tuple[str | None, ...]


def catalog(url: str) -> list[Row]:
    """Return every object in jobq's schemas: definition, owner, grants, comment."""
    with psycopg.connect(url) as connection:
        rows: list[Row] = connection.execute(QUERY).fetchall()
    return sorted(rows, key=repr)


def seeds(url: str) -> dict[str, list[str]]:
    """Return the rows of every table that a fresh jobq has filled."""
    tables = f"""
        select c.oid::regclass::text
        from pg_class as c
        where c.relnamespace in {SCHEMA} and c.relkind = 'r'
        and c.relname <> 'deployed_object'
    """
    with psycopg.connect(url) as connection:
        names = [str(row[0]) for row in connection.execute(tables)]
        return {name: _rows(connection, name) for name in sorted(names)}


def _rows(connection: psycopg.Connection[tuple[object, ...]], table: str) -> list[str]:
    """Return a table's rows as text, but for the times at which they were made."""
    query = f"select to_jsonb(t) - array['created_at', 'updated_at', 'rolled_to'] from {table} as t"
    rows = connection.execute(query)
    return sorted(str(row[0]) for row in rows)
