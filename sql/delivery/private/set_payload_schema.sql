-- Purpose: keep the schema of a kind's payloads where it can be enforced: by
-- schema_violation(), else as a JSON Schema for the extension pg_jsonschema, for clients
-- and for deliveries.
-- Invariant: one of the two at most; \b, \B and options mean other things to
-- PostgreSQL than to clients. Raises: nothing.
create or replace function jobq_private.set_payload_schema(kind text, schema jsonb)
returns void
language plpgsql
set standard_conforming_strings = on
as $$
declare
    _is_plain constant boolean :=
        jobq_private.schema_problem(set_payload_schema.schema, '') is null
        and not set_payload_schema.schema @? '$.**.pattern ? (@ like_regex "[\\\\][bB]|[(][?][^:]")';
begin
    update jobq_private.kind as k
    set
        payload_schema = case when _is_plain then set_payload_schema.schema end,
        json_schema = case when not _is_plain then set_payload_schema.schema end
    where k.kind = set_payload_schema.kind;
end
$$;
