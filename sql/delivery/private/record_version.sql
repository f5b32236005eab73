-- Purpose: store a version of a definition, and return its number.
-- Invariant: a number means one document forever, even if the definition is deleted and
-- created again; an unchanged document gets no new version. Called between
-- begin_definition() and the end of its transaction.
create or replace function jobq_private.record_version(type text, name text, document jsonb)
returns integer language plpgsql as $$
declare
    _last jobq_private.definition_version;
begin
    select v.* into _last
    from jobq_private.definition_version as v
    where v.type = record_version.type and v.name = record_version.name
    order by v.version desc
    limit 1;

    if _last.document = record_version.document then
        return _last.version;
    end if;
    insert into jobq_private.definition_version (type, name, version, document)
    values (
        record_version.type, record_version.name, coalesce(_last.version, 0) + 1,
        record_version.document
    );
    return coalesce(_last.version, 0) + 1;
end
$$;
