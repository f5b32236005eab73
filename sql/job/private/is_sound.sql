-- Purpose: whether a payload of any size is acceptable by itself, beside metadata of at most 308
-- bytes, for enqueue().
-- Invariant: what new_job_problem() says of a job that has nothing else; planned once, which leaves
-- of it what looks at payloads, and of one of at most 308 bytes what looks at its depth. Hot: its
-- caller pins the search path. Raises: nothing.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.is_sound(payload jsonb)
returns boolean
language plpgsql
stable
strict
parallel safe
security invoker
as $$
declare
    _size integer;
begin
    if pg_column_size(is_sound.payload) <= 600
        and octet_length(is_sound.payload::text) <= 308
    then
        return not jsonb_path_exists(is_sound.payload, (
            'strict $.**{' || (jobq_private.defaults()).max_payload_depth::text || '}'
        )::jsonpath);
    end if;
    _size := jobq_private.json_size(is_sound.payload);
    return jobq_private.new_job_problem(
        row(
            1, 'kind', is_sound.payload, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null, null, null, null, null
        )::jobq_private.new_job,
        _size, (jobq_private.defaults()).max_payload_bytes - 308,
        (jobq_private.defaults()).max_payload_depth
    ) is null;
end
$$;

revoke all on function jobq_private.is_sound from public;

comment on function jobq_private.is_sound is
'Says whether a payload is acceptable by itself.';
