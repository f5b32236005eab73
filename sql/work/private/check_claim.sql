-- Purpose: refuse a claim with invalid arguments, and return max_jobs. Raises: 22004, 22023.
create or replace function jobq_private.check_claim(
    queues text[], worker text, max_jobs integer, except_kinds text[] default null,
    max_limited integer default null, kinds text[] default null
)
returns integer
language plpgsql
stable
as $$
declare
    _is_flat constant boolean := coalesce(greatest(
        array_ndims(queues), array_ndims(except_kinds), array_ndims(kinds)
    ), 1) = 1;
    _null constant text := case
        when not _is_flat then null
        when queues is null or array_position(queues, null) is not null then 'queues'
        when array_position(except_kinds, null) is not null then 'except_kinds'
        when array_position(kinds, null) is not null then 'kinds'
        when worker is null then 'worker'
        when max_jobs is null then 'max_jobs'
    end;
    _invalid constant text := case
        when length(worker) not between 1 and 256 then 'worker must have 1 to 256 characters'
        when max_jobs not between 0 and 10000 then 'max_jobs must be from 0 to 10000'
        when max_limited < 0 then 'max_limited must be at least 0'
    end;
begin
    if not _is_flat then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queues, except_kinds and kinds must be one-dimensional'
        );
    elsif _null is not null then
        perform jobq_private.raise_error('NULL_ARGUMENT', _null);
    elsif _invalid is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _invalid);
    end if;
    return max_jobs;
end
$$;
