-- Purpose: raise a violated constraint of a definition as a typed error, with the constraint's
-- comment as detail. Without a constraint, a priority did not fit its column. Raises: 22023.
create or replace function jobq_private.refuse_setting(relation regclass, violated text)
returns void
language plpgsql
stable
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
