-- Purpose: refuse a claim with invalid arguments. Raises: 22004, 22023.
create or replace function jobq_private.check_claim(
    queues text[] default '{}', worker text default 'w', max_jobs integer default 0,
    except_kinds text[] default null, max_limited integer default null, kinds text[] default null
)
returns void language plpgsql stable as $$
declare
    _problem constant text[] := case
        when greatest(array_ndims(queues), array_ndims(except_kinds), array_ndims(kinds)) > 1
        then array['INVALID_ARGUMENT', 'queues, except_kinds and kinds must be one-dimensional']
        when queues is null or array_position(queues, null) is not null
        then array['NULL_ARGUMENT', 'queues']
        when array_position(except_kinds, null) is not null
        then array['NULL_ARGUMENT', 'except_kinds']
        when array_position(kinds, null) is not null then array['NULL_ARGUMENT', 'kinds']
        when worker is null then array['NULL_ARGUMENT', 'worker']
        when max_jobs is null then array['NULL_ARGUMENT', 'max_jobs']
        when length(worker) not between 1 and 256
        then array['INVALID_ARGUMENT', 'worker must have 1 to 256 characters']
        when max_jobs not between 0 and 10000
        then array['INVALID_ARGUMENT', 'max_jobs must be from 0 to 10000']
        when max_limited < 0 then array['INVALID_ARGUMENT', 'max_limited must be at least 0']
    end;
begin
    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], _problem[2]);
    end if;
end
$$;
