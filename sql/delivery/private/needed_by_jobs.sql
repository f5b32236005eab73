-- Purpose: the jobs that wait for delivery by an older version of their endpoint that refers to a
-- secret, or to a value missing from the new entries of a config; null if there are none.
-- Invariant: reads versions first, and jobs only of versions with such a reference.
-- Deleted payload specs and configs do not matter, because jobs use their versions.
create or replace function jobq_private.needed_by_jobs(
    namespace text, name text, entries jsonb default null
)
returns text language plpgsql stable as $$
begin
    return (
        select format('jobs of endpoint %s, version %s: %s', u.endpoint, u.version, u.written)
        from (
            select
                v.name as endpoint, v.version as delivery_version, r.written,
                v.document ->> 'endpoint_version' as version
            from jobq_private.definition_version as v
            cross join lateral jobq_private.template_references(v.document -> 'spec') as r
            where v.type = 'delivery'
            and r.namespace = needed_by_jobs.namespace
            and case r.namespace
                when 'secret' then r.path = needed_by_jobs.name
                else v.document ->> 'config' = needed_by_jobs.name
                    and not r.is_optional
                    and entries #> string_to_array(r.path, '.') is null
            end
            offset 0
        ) as u
        where exists (
            select from jobq_private.job as j
            where j.kind = u.endpoint and j.delivery_version = u.delivery_version
        )
        limit 1
    );
end
$$;
