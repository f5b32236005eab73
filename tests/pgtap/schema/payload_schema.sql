-- What the payload_schema of a kind promises.
begin;
select plan(29);

select jobq.put_kind('typed', payload_schema => '{
    "type": "object", "required": ["to"], "additionalProperties": false,
    "properties": {
        "to": {"type": "string", "minLength": 3, "maxLength": 20, "pattern": "@"},
        "n": {"type": "integer", "minimum": 1, "maximum": 9},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "x": {"type": ["number", "null"]}
    }
}');
select is(
    refusal(format('select jobq.enqueue(''typed'', %L)', p.payload)),
    p.refusal, format('payload %s: %s', p.payload, p.refusal)
)
from (
    values
    ('{"to": "a@b"}', 'none'),
    ('{"to": "a@b", "n": 9, "tags": ["a", "b"], "x": 1.5}', 'none'),
    ('{"to": "a@b", "n": 1.0, "tags": [], "x": null}', 'none'),
    ('{}', 'JQ006 PAYLOAD_INVALID'), ('[]', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "a@"}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "abcd"}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "a@b567890123456789012"}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": 1}', 'JQ006 PAYLOAD_INVALID'), ('{"to": null}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "a@b", "n": 0}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "a@b", "n": 10}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "a@b", "n": 1.5}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "a@b", "tags": ["a", "c"]}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "a@b", "x": "1"}', 'JQ006 PAYLOAD_INVALID'),
    ('{"to": "a@b", "cc": 1}', 'JQ006 PAYLOAD_INVALID')
) as p (payload, refusal);
select jobq.put_kind('chosen',
    payload_schema => '{"enum": [{"a": 1, "b": 2}, [1, 2], 3]}');
select is(
    refusal(format('select jobq.enqueue(''chosen'', %L)', p.payload)),
    p.refusal, format('payload %s of three to choose from: %s', p.payload, p.refusal)
)
from (
    values
    ('{"b": 2, "a": 1.0}', 'none'), ('[1, 2]', 'none'), ('3', 'none'),
    ('{"a": 1}', 'JQ006 PAYLOAD_INVALID'), ('[1]', 'JQ006 PAYLOAD_INVALID'),
    ('[3]', 'JQ006 PAYLOAD_INVALID')
) as p (payload, refusal);
select is(
    refusal('select jobq.enqueue(''typed'')'), 'JQ006 PAYLOAD_INVALID',
    'the default payload is held against the schema too'
);
select is(
    refusal('select jobq.enqueue(''typed'', null)'), 'JQ006 PAYLOAD_INVALID',
    'and so is none'
);

select jobq.put_kind('needs', payload_schema => '{"required": ["to"]}');
select is(
    refusal(format('select jobq.enqueue_many(%L)', b.batch)), b.refusal,
    format('enqueue_many(%s): %s', b.batch, b.refusal)
)
from (
    values
    ('[{"kind": "needs", "payload": {"to": 1}}]', 'none'),
    ('[{"kind": "needs", "payload": {"to": 1}}, {"kind": "needs"}]', 'JQ006 PAYLOAD_INVALID')
) as b (batch, refusal);

select is(
    jobq_private.schema_violation(('{"type": "number"' || s.bounds || '}')::jsonb, '7', 'n'),
    'n must be ' || s.allowed, 'n must be ' || s.allowed
)
from (
    values (', "minimum": 8', 'at least 8'), (', "maximum": 6', 'at most 6'),
    (', "minimum": 1, "maximum": 6', 'from 1 to 6')
) as s (bounds, allowed);

select * from finish();
rollback;
