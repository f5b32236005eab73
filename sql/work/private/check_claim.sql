-- Purpose: refuse a claim with invalid arguments. Raises: 22004, 22023.
create or replace function jobq_private.check_claim(
    queues text[], worker text, max_jobs integer, except_kinds text[] default null,
    max_limited integer default null
)
returns void
language plpgsql
stable
as $$
begin
    if array_ndims(queues) > 1 or array_ndims(except_kinds) > 1 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queues and except_kinds must be one-dimensional'
        );
    elsif queues is null or array_position(queues, null) is not null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    elsif array_position(except_kinds, null) is not null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'except_kinds');
    elsif worker is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'worker');
    elsif max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif length(worker) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'worker must have 1 to 256 characters'
        );
    elsif max_jobs not between 0 and 10000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_jobs must be from 0 to 10000'
        );
    elsif max_limited < 0 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_limited must be at least 0'
        );
    end if;
end
$$;
