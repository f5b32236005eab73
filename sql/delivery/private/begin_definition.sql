-- Purpose: begin a change of a definition: check its name and the expected version.
-- Invariant: definitions change one at a time, so that referenced definitions cannot disappear
-- meanwhile; the lock lasts until the transaction ends, and no reader waits for it.
-- Raises: 22004, 22023, 42501, JQ004, JQ007.
create or replace function jobq_private.begin_definition(type text, name text, mode text)
returns void language plpgsql as $$
declare
    _exists boolean;
begin
    perform jobq_private.check_given(begin_definition.type, num_nulls(begin_definition.name));
    lock table jobq_private.definition_version in share row exclusive mode;
    select exists (
        select from jobq_private.definition_document as d
        where d.type = begin_definition.type and d.name = begin_definition.name
    ) into _exists;

    perform jobq_private.check_argument(case
        when begin_definition.mode in ('put', 'create', 'update') is not true
        then 'mode must be put, create or update'
    end);
    if begin_definition.mode = 'update' and not _exists then
        perform jobq_private.refuse_definition(begin_definition.type, begin_definition.name);
    end if;
    perform jobq_private.check_problem('ALL_QUEUES_NEEDED', case
        when jobq_private.worked_queues() is not null
        then begin_definition.type || ' ' || begin_definition.name
    end);
    perform jobq_private.check_problem('DEFINITION_EXISTS', case
        when begin_definition.mode = 'create' and _exists
        then begin_definition.type || ' ' || begin_definition.name
    end);
end
$$;
