-- Purpose: whether a payload of any size is acceptable by itself, for enqueue().
-- Invariant: what new_job_problem() says of a job that has nothing else; planned once, which leaves
-- of it what looks at payloads. Hot: its caller pins the search path. Raises: nothing.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.is_sound(
    payload jsonb, max_bytes integer, max_depth integer
)
returns boolean
language plpgsql
stable
strict
parallel safe
security invoker
as $$
declare
    _size constant integer := jobq_private.json_size(is_sound.payload);
begin
    return jobq_private.new_job_problem(
        row(
            1, 'kind', is_sound.payload, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null, null, null, null, null
        )::jobq_private.new_job,
        _size, is_sound.max_bytes, is_sound.max_depth
    ) is null;
end
$$;

revoke all on function jobq_private.is_sound from public;

comment on function jobq_private.is_sound is
'Says whether a payload is acceptable by itself.';
