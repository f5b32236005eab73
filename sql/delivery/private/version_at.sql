-- Purpose: the version of a definition at a given time; its first version, for earlier
-- times.
-- Invariant: the versions of a definition are ordered by time.
create or replace function jobq_private.version_at(type text, name text, moment timestamptz)
returns jobq_private.definition_version
language sql
stable
parallel safe
as $$
    select v.*
    from jobq_private.definition_version as v
    where v.type = version_at.type and v.name = version_at.name
    order by
        v.created_at <= version_at.moment desc,
        case when v.created_at <= version_at.moment then -v.version else v.version end
    limit 1
$$;
