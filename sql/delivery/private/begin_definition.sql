-- Purpose: begin a change of a definition: check its name and the expected version.
-- Invariant: definitions change one at a time, so that referenced definitions cannot
-- disappear meanwhile; the lock lasts until the transaction ends, and no reader waits
-- for it.
-- Raises: 22004, 22023, JQ004, JQ007.
create or replace function jobq_private.begin_definition(type text, name text, mode text)
returns void
language plpgsql
as $$
declare
    _exists boolean;
begin
    if begin_definition.name is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', begin_definition.type);
    end if;
    lock table jobq_private.definition_version in share row exclusive mode;
    select exists (
        select from jobq_private.definition_document as d
        where d.type = begin_definition.type and d.name = begin_definition.name
    ) into _exists;

    if begin_definition.mode = 'create' and _exists then
        perform jobq_private.raise_error('DEFINITION_EXISTS', format(
            '%s %s', begin_definition.type, begin_definition.name
        ));
    elsif begin_definition.mode = 'update' and not _exists then
        perform jobq_private.refuse_definition(begin_definition.type, begin_definition.name);
    elsif begin_definition.mode not in ('put', 'create', 'update')
        or begin_definition.mode is null
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'mode must be put, create or update');
    end if;
end
$$;
