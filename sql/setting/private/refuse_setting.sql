-- Purpose: turn a violated constraint of a definition into a typed error.
-- Invariant: always raises, in the words of the constraint's comment; called from an exception
-- handler. No constraint is violated by a priority that its column cannot hold. Raises: 22023.
create or replace function jobq_private.refuse_setting(relation regclass, violated text)
returns void
language plpgsql
stable
parallel safe
as $$
begin
    perform jobq_private.raise_error('INVALID_ARGUMENT', coalesce(
        (
            select obj_description(c.oid, 'pg_constraint')
            from pg_catalog.pg_constraint as c
            where c.conrelid = relation and c.conname = violated
        ),
        'priority must be from -32768 to 32767'
    ));
end
$$;
