-- Purpose: whether the schema is as deployed, and of the client's release.
-- Invariant: `schema` names every object that differs; the other checks explain some of
-- the differences. Without a given release, it is not compared.
create or replace function jobq_private.schema_health(release text)
returns setof jobq_private.finding language sql as $$
    (
        with different as (
            select d.object, d.is_detail
            from jobq_private.schema_difference as d
            union all
            -- Partitions, which are not compared.
            select format('trigger %I on %s is disabled', t.tgname, c.oid::regclass), false
            from pg_trigger as t
            join pg_class as c on c.oid = t.tgrelid and c.relispartition
            where c.relnamespace = 'jobq_private'::regnamespace and t.tgenabled not in ('O', 'A')
            union all
            select format('index %s is invalid', i.indexrelid::regclass), false
            from pg_index as i
            join pg_class as c on c.oid = i.indrelid and c.relispartition
            where c.relnamespace = 'jobq_private'::regnamespace and not i.indisvalid
        )
        select s.subject, false, d.object, null
        from different as d
        join (
            values
            ('schema', '^'), ('indexes', '^index '), ('constraints', '^constraint '),
            ('triggers', '^trigger '), ('owners', '^owner '),
            ('grants', '^grant (?!.* to public)'), ('public', '^grant .* to public')
        ) as s (subject, pattern) on d.object ~ s.pattern
        order by d.is_detail, d.object
    )
    union all
    select
        'release', d.is_same,
        case when d.is_same then 'the schema belongs to this release'
            else 'the deployed schema belongs to another release' end,
        null
    from (
        select exists (
            select from jobq_private.deployed_object as o
            where o.object = 'release' and o.sum = schema_health.release
        )
    ) as d (is_same)
    where schema_health.release is not null
$$;
