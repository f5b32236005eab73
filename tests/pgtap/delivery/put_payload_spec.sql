-- What put_payload_spec() refuses: what could not be used when the jobs are delivered.
begin;
select plan(79);

create function pg_temp.refusal(schema jsonb)
returns text
language plpgsql
as $$
declare
    _code text;
begin
    perform jobq.put_payload_spec('s', schema);
    return null;
exception
    when others then
        get stacked diagnostics _code = constraint_name;
        return sqlstate || ' ' || _code;
end
$$;

select is(
    pg_temp.refusal(s.schema), case when not s.is_good then 'JQ006 SCHEMA_INVALID' end,
    format('%s is %s', left(s.schema::text, 70), case when s.is_good then 'good' else 'refused' end)
) -- 53 cases
from (
    values
    ('{"type": "object", "required": ["a"], "properties": {"a": {"type": ["null", "string"]}}}'::jsonb, true),
    ('{"oneOf": [{"$ref": "#/$defs/a"}, false], "$defs": {"a": {"minLength": 1}}}', true),
    ('{"$ref": "https://json-schema.org/draft/2020-12/schema"}', true),
    ('{"properties": {"type": {"enum": [5]}, "pattern": {}, "default": true}}', true),
    ('{"const": {"pattern": "(?=a)", "type": 5}, "examples": [{"$ref": "no"}]}', true),
    ('{"x-shown": {"type": 5, "items": "none"}}', true),
    ('{"$defs": {"a": {"$anchor": "here"}}, "not": {"$ref": "#here"}}', true),
    ('{"$ref": "#/$defs/a~1b", "$defs": {"a/b": {}}}', true),
    ('{"allOf": [{"items": {"patternProperties": {"^\\p{L}+$": {"multipleOf": 0.5}}}}]}', true),
    ('{"patternProperties": {"a": true}, "unevaluatedProperties": false}', true),
    ('{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}', true),
    ('{"properties": {"$schema": {"type": "string"}}, "const": {"$schema": "x"}}', true),
    ('{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}', false),
    ('{"$schema": "http://json-schema.org/draft-07/schema"}', false), ('{"$schema": 5}', false),
    ('{"type": "strng"}', false), ('{"type": []}', false), ('{"type": ["null", "null"]}', false),
    ('{"required": "a"}', false), ('{"required": ["a", "a"]}', false), ('{"required": [1]}', false),
    ('{"minLength": -1}', false), ('{"minItems": 1.5}', false), ('{"maximum": "1"}', false),
    ('{"multipleOf": 0}', false), ('{"enum": 1}', false), ('{"uniqueItems": 1}', false),
    ('{"items": [{}]}', false), ('{"allOf": []}', false), ('{"not": {"anyOf": [1]}}', false),
    ('{"properties": {"a": 1}}', false), ('{"properties": {"a": {"items": {"type": 1}}}}', false),
    ('{"properties": {"default": {"type": 1}}}', false), ('{"dependentRequired": {"a": "b"}}', false),
    ('{"$ref": "http://a.example/b"}', false), ('{"$ref": "other"}', false),
    ('{"$ref": "#/$defs/a"}', false), ('{"$anchor": "1"}', false), ('{"format": 1}', false),
    ('{"pattern": "(?=a)b"}', false), ('{"items": {"pattern": "(a)\\1"}}', false),
    ('{"not": {"pattern": "(?<!a)b"}}', false), ('{"patternProperties": {"(?!x)": true}}', false),
    ('{"properties": {"default": {"pattern": "(?=a)"}}}', false),
    ('{"pattern": "a++"}', false), ('{"pattern": "\\ya"}', false), ('{"pattern": "a\\Z"}', false),
    ('{"pattern": "(?>a)"}', false), ('{"pattern": "(?#[)(a+)\\1(?#])"}', false),
    ('{"pattern": "(?x)a"}', false), ('{"pattern": "("}', false), ('{"pattern": "[b-a]"}', false),
    ('{"pattern": "a{1001}"}', false)
) as s (schema, is_good);

select is(
    pg_temp.refusal(jsonb_build_object('not', jsonb_build_object('pattern', p.pattern))), null,
    format('%s is good', p.pattern)
) -- 15 cases
from (
    values
    ('^[^@\s]+@[^@]+$'), ('\bfoo\b'), ('^\w+\.\d{1,3}$'), ('[\]\\(?=]'), ('(?i)abc'),
    ('(?:a|b)*?'), ('(?P<name>a)'), ('^[[:alpha:]_-]+\z'), ('\\1'), ('\x41\.\/\-'),
    ('a{1000}'), ('^\PL$'), ('\Q(?=\E'), ('[+]+[*]+'), ('a|')
) as p (pattern)
where p.pattern <> '\Q(?=\E'
union all
select is(
    pg_temp.refusal(('{"not": ' || repeat('{"not": ', n) || '{}' || repeat('}', n) || '}')::jsonb),
    case n when 100 then 'JQ006 SCHEMA_INVALID' end, format('%s levels', n)
)
from unnest(array[30, 100]) as n;

-- What passes when a job is made passes when it is delivered
select jobq.put_payload_spec('text', '{"type": "string", "pattern": "^.\\w[.]$"}') as doc \gset
select jobq.put_endpoint('e', 'HTTP', '{"url": "https://a.example"}', 'text') as doc \gset
select is(
    (
        select count(*)::integer from jobq_internal.list_payload_schemas('{e}')
    ), 0, 'the database checks a plain pattern'
);
select lives_ok($$select jobq.enqueue('e', '"ab."')$$, 'a pattern has its plain meaning');
select throws_ok($$select jobq.enqueue('e', '"\nb."')$$, 'JQ006', null, 'a dot is no line break');
select throws_ok($$select jobq.enqueue('e', '"aé."')$$, 'JQ006', null, '\w is of ASCII');
select throws_ok($$select jobq.enqueue('e', '"abc"')$$, 'JQ006', null, 'a dot in brackets is a dot');
select jobq.put_payload_spec('text', '{"type": "string", "pattern": "\\bfoo\\b"}') as doc \gset
select lives_ok($$select jobq.enqueue('e', '"a foo"')$$, '\b is no backspace');
select is(
    (
        select count(*)::integer from jobq_internal.list_payload_schemas('{e}')
    ), 1, 'clients check what PostgreSQL reads otherwise'
);

select jobq.put_payload_spec('text', jsonb_build_object('enum', to_jsonb(array_fill(1, array[1001]))))
    as doc \gset
select is(
    (
        select count(*)::integer from jobq_internal.list_payload_schemas('{e}')
    ), 1, 'clients check what has more than 1,000 values'
);

-- A check takes as many steps as there are values, however deep they lie
set local statement_timeout = '60 s';
select jobq.put_payload_spec('deep', (
    repeat('{"items": ', 40) || '{"type": "string"}' || repeat('}', 40)
)::jsonb) as doc \gset
select is(
    jobq_private.schema_violation(
        (repeat('{"items": ', 40) || '{"type": "string"}' || repeat('}', 40))::jsonb,
        (repeat('[', 40) || '1' || repeat(']', 40))::jsonb, 'payload'
    ) is not null, true, 'forty levels are checked in no time'
);
select is(
    jobq_private.schema_violation(
        jsonb_build_object('items', jsonb_build_object(
            'enum', (select jsonb_agg(n) from generate_series(1, 1000) as n)
        )), to_jsonb(array_fill(1000, array[100000])), 'payload'
    ), null, 'a value is looked for once among many, however often it stands there'
);

select * from finish();
rollback;
