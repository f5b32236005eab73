-- Purpose: store the payload schema of a kind where it can be enforced: for
-- schema_violation(), else as a JSON Schema for the extension pg_jsonschema, clients
-- and deliveries.
-- Invariant: at most one of the two. \b, \B and options have other meanings in
-- PostgreSQL than in clients.
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
