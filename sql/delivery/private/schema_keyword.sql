-- Purpose: the type that a keyword of JSON Schema (draft 2020-12) requires, and whether
-- a value has it.
-- Invariant: an unknown keyword has no row; strict paths, so that an array is not taken
-- for its elements.
create or replace function jobq_private.schema_keyword(
    keyword text, value jsonb, out meaning text, out is_met boolean
)
returns record
language plpgsql
immutable
parallel safe
as $$
begin
    select c.meaning, value @? c.path into meaning, is_met
    from (
        values
        ('$ref $dynamicRef', 'a location in the schema, or in the draft''s own',
            jsonpath 'strict $ ? (@ like_regex "^#" || @ starts with "https://json-schema.org/draft/2020-12/")'),
        ('$id', 'an address without a fragment', 'strict $ ? (@ like_regex "^[^#]*#?$")'),
        ('$anchor $dynamicAnchor', 'a plain name',
            'strict $ ? (@ like_regex "^[A-Za-z_][-A-Za-z0-9._]*$")'),
        ('$schema $comment title description format pattern contentEncoding'
            || ' contentMediaType', 'a text', 'strict $ ? (@.type() == "string")'),
        ('deprecated readOnly writeOnly uniqueItems', 'true or false',
            'strict $ ? (@.type() == "boolean")'),
        ('minimum maximum exclusiveMinimum exclusiveMaximum', 'a number',
            'strict $ ? (@.type() == "number")'),
        ('multipleOf', 'a number above 0', 'strict $ ? (@ > 0)'),
        ('minLength maxLength minItems maxItems minProperties maxProperties minContains'
            || ' maxContains', 'a whole number, 0 or more',
            'strict $ ? (@ >= 0 && @ == @.floor())'),
        ('enum examples', 'an array', 'strict $ ? (@.type() == "array")'),
        ('required', 'an array of different names',
            'strict $ ? (@.type() == "array" && !exists (@[*] ? (@.type() != "string")))'),
        ('dependentRequired', 'an object of arrays of names',
            'strict $ ? (@.type() == "object" && !exists (@.* ? (@.type() != "array"
                || exists (@[*] ? (@.type() != "string")))))'),
        ('type', 'a type, or an array of different ones',
            'strict $ ? (@ like_regex "^(object|array|string|number|integer|boolean|null)$"
                || (@.type() == "array" && exists (@[*]) && !exists (@[*] ? (!(@ like_regex
                    "^(object|array|string|number|integer|boolean|null)$")))))'),
        ('not if then else items contains additionalProperties propertyNames contentSchema'
            || ' unevaluatedItems unevaluatedProperties', 'a schema',
            'strict $ ? (@.type() == "object" || @.type() == "boolean")'),
        ('allOf anyOf oneOf prefixItems', 'an array of schemas',
            'strict $ ? (@.type() == "array" && exists (@[*])
                && !exists (@[*] ? (@.type() != "object" && @.type() != "boolean")))'),
        ('$defs definitions dependentSchemas patternProperties properties',
            'an object of schemas',
            'strict $ ? (@.type() == "object"
                && !exists (@.* ? (@.type() != "object" && @.type() != "boolean")))')
    ) as c (keywords, meaning, path)
    where schema_keyword.keyword = any(string_to_array(c.keywords, ' '));
    if schema_keyword.keyword in ('required', 'type') and jsonb_typeof(value) = 'array' then
        is_met := is_met and jsonb_array_length(value) = (
            select count(distinct e.item) from jsonb_array_elements(value) as e (item)
        );
    end if;
end
$$;
