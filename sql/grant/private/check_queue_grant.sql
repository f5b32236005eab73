-- Purpose: refuse an invalid grant by queue, and find the role.
-- Invariant: reads only. Raises: 22004, 22023.
create or replace function jobq_private.check_queue_grant(
    grantee text, queue text, privilege text
)
returns regrole language plpgsql stable parallel safe as $$
declare
    _grantee constant regrole := (
        select r.oid from pg_catalog.pg_roles as r
        where r.rolname = check_queue_grant.grantee
    );
begin
    perform jobq_private.check_given(
        'grantee, queue and privilege', num_nulls(grantee, queue, privilege)
    );
    perform jobq_private.check_argument(case
        when _grantee is null then 'grantee must be a role'
        when length(queue) not between 1 and 128 then 'queue must have 1 to 128 characters'
        when privilege not in ('enqueue', 'work') then 'privilege must be enqueue or work'
    end);
    return _grantee;
end
$$;
