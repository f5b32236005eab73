-- What jobq_internal.list_payload_schemas() promises, and how JSON Schemas that the database cannot
-- Needs more than the core.
-- enforce by itself are enforced where the extension pg_jsonschema is. A stand-in of the
-- extension's signature answers here: it tells how it is asked, not how well that checks.
begin;
select plan(15);

select jobq.put_payload_spec('plain', '{"required": ["to"]}') as doc \gset
select jobq.put_payload_spec('either', '{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}'
) as doc \gset
select jobq.put_endpoint('e-plain', 'HTTP', '{"url": "http://u"}', 'plain') as doc \gset
select jobq.put_endpoint('e-either', 'HTTP', '{"url": "http://u"}', 'either') as doc \gset
select jobq.put_endpoint('e-any', 'HTTP', '{"url": "http://u"}') as doc \gset

prepare listed as
select s.kind, s.schema ->> 'oneOf' is not null
from jobq_internal.list_payload_schemas('{e-plain,e-either,e-any,work}') as s;
select results_eq(
    'listed', $$ values ('e-either', true) $$,
    'clients get the schemas that the database cannot enforce by itself, and no others'
);
select is_empty('select * from jobq_internal.list_payload_schemas(null)', 'no kinds, no schemas');
select is(
    refusal('select jobq.enqueue(''e-plain'')'), 'JQ006 PAYLOAD_INVALID',
    'what it can enforce it enforces'
);
select is(
    refusal('select jobq.enqueue(''e-either'')'), 'none',
    'without the extension the rest is left to the delivery'
);

-- A function of the same name that is not the extension's
create schema "Ext";
create function "Ext".jsonb_matches_schema(schema json, instance jsonb)
returns boolean
language plpgsql
immutable
as $$
begin
    return (instance ? 'a') <> (instance ? 'b');
end
$$;
create function public.jsonb_matches_schema(schema json, instance jsonb)
returns boolean
language sql
as 'select 1 / 0 = 1';
alter extension plpgsql add function public.jsonb_matches_schema(json, jsonb);
select is(
    refusal('select jobq.enqueue(''e-either'')'), 'none',
    'a function of that name is not called when it is no part of the extension'
);

-- The extension
set local allow_system_table_mods = on;
insert into pg_catalog.pg_extension (
    oid, extname, extowner, extnamespace, extrelocatable, extversion
)
values (
    4000000000, 'pg_jsonschema', 'jobq_owner'::regrole, '"Ext"'::regnamespace, false, '0'
);
alter extension pg_jsonschema add function "Ext".jsonb_matches_schema(json, jsonb);
select is(
    refusal('select jobq.enqueue(''e-either'')'), 'none',
    'nor is one that the owner of jobq may not use'
);
grant usage on schema "Ext" to jobq_owner;
select is(
    refusal(format('select jobq.enqueue(''e-either'', %L)', a.payload)), a.refusal,
    format('with the extension, enqueue(%s): %s', a.payload, a.refusal)
)
from (
    values
    ('{"a": 1}', 'none'), ('{"a": 1, "b": 2}', 'JQ006 PAYLOAD_INVALID'),
    ('{}', 'JQ006 PAYLOAD_INVALID')
) as a (payload, refusal);
select is(
    refusal('select jobq.enqueue(''e-either'', null)'), 'JQ006 PAYLOAD_INVALID',
    'no payload is an empty one'
);
select is(
    refusal('select jobq.enqueue(''e-any'')'), 'none',
    'an endpoint without a payload spec takes anything'
);

create or replace function "Ext".jsonb_matches_schema(schema json, instance jsonb)
returns boolean
language sql
immutable
as $$
    select schema ->> '$schema' = 'https://json-schema.org/draft/2020-12/schema'
$$;
select jobq.put_payload_spec('either', '{"$schema": "http://json-schema.org/draft/2020-12/schema#", "anyOf": [{}]}'
) as doc \gset
select is(
    refusal('select jobq.enqueue(''e-either'')'), 'none',
    'schemas are of draft 2020-12, as deliveries read them'
);
select jobq.put_payload_spec('either', '{"x": {"$ref": "http://evil.example/"}, "$ref": "#/x"}'
) as doc \gset
create or replace function "Ext".jsonb_matches_schema(schema json, instance jsonb)
returns boolean
language sql
immutable
as 'select false';
select is(
    refusal('select jobq.enqueue(''e-either'')'), 'none',
    'a schema that leads out of itself is not given to the extension'
);
select jobq.put_payload_spec('either', '{"$defs": {"a": {}}, "$ref": "#/$defs/a"}') as doc \gset
select is(
    refusal('select jobq.enqueue(''e-either'')'), 'JQ006 PAYLOAD_INVALID',
    'one that leads into itself is'
);

select jobq.put_payload_spec('either', '{"required": ["to"]}') as doc \gset
select is_empty('listed', 'a new schema takes the place of the old one');

select * from finish();
rollback;
