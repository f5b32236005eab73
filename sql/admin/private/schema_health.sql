-- Purpose: whether the schema is as deployed, and of the client's release.
-- Invariant: reads only. `schema` names every object that differs; the other rows
-- explain some of the differences. Raises: nothing.
-- Argument release: null means that the release is not compared.
create or replace function jobq_private.schema_health(release text)
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language sql
as $$
    with different as (
        select d.object, d.is_detail
        from jobq_private.schema_difference as d
        union all
        -- Includes the triggers of foreign keys.
        select format('trigger %s of %s is disabled', t.tgname, t.tgrelid::regclass), false
        from pg_trigger as t
        join pg_class as c on c.oid = t.tgrelid
        where c.relnamespace in ('jobq'::regnamespace, 'jobq_private'::regnamespace)
        and t.tgenabled not in ('O', 'A')
        union all
        select format('index %s is invalid', i.indexrelid::regclass), false
        from pg_index as i
        join pg_class as c on c.oid = i.indexrelid
        where c.relnamespace = 'jobq_private'::regnamespace and not i.indisvalid
    )
    select
        s.subject, count(d.object) = 0, s.severity,
        case when count(d.object) = 0 then s.fine
            else format('%s objects differ from the deployed schema: %s', count(d.object),
                jobq_private.listed(array_agg(d.object order by d.is_detail, d.object)))
        end,
        'run jobq deploy of the release that workers and clients use; it repairs everything except tables and'
        ' columns, which it lists'
    from (
        values
        ('schema', 'failure', 'the schema is unchanged since its deployment', '^', ''),
        ('indexes', 'failure', 'every index exists and is valid', '^index ', ''),
        ('constraints', 'failure', 'every constraint and foreign key exists', '^constraint ', ''),
        ('triggers', 'failure', 'every trigger exists and is enabled', '^trigger ', ''),
        ('owners', 'failure', 'jobq_owner owns everything', '^owner ', ''),
        ('grants', 'failure', 'every role has its privileges', '^grant ', ' to public'),
        ('public', 'failure', 'PUBLIC has no privileges of jobq''s roles', '^grant .* to public', '')
    ) as s (subject, severity, fine, pattern, except_pattern)
    left join different as d
    on d.object ~ s.pattern and (s.except_pattern = '' or d.object !~ s.except_pattern)
    group by s.subject, s.severity, s.fine
    union all
    select
        'release', o.sum is not distinct from schema_health.release, 'warning',
        case when o.sum is not distinct from schema_health.release
            then 'the schema belongs to this release'
            else 'the deployed schema belongs to another release'
        end,
        'run jobq deploy of the release that workers and clients use'
    from (values ('release')) as r (object)
    left join jobq_private.deployed_object as o on o.object = r.object
    where schema_health.release is not null
$$;
