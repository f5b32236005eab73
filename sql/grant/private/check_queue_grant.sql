-- Purpose: refuse an invalid grant by queue, and find the role.
-- Invariant: reads only. Raises: 22004, 22023.
create or replace function jobq_private.check_queue_grant(
    grantee text, queue text, privilege text
)
returns regrole
language plpgsql
stable
parallel safe
as $$
declare
    _grantee constant regrole := (
        select r.oid from pg_catalog.pg_roles as r
        where r.rolname = check_queue_grant.grantee
    );
begin
    if num_nulls(grantee, queue, privilege) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'grantee, queue and privilege');
    elsif _grantee is null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'grantee must be a role');
    elsif length(queue) not between 1 and 128 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queue must have 1 to 128 characters'
        );
    elsif privilege not in ('enqueue', 'work') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'privilege must be enqueue or work'
        );
    end if;
    return _grantee;
end
$$;
