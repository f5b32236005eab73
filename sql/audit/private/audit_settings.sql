-- Purpose: record which settings a declaration changes, with their new values. A repeated
-- declaration adds no row.
create or replace function jobq_private.audit_settings(
    action text, subject text, before jsonb, after jsonb
)
returns void language sql as $$
    insert into jobq_private.audit (action, subject, reason)
    select audit_settings.action, audit_settings.subject, left(c.changes, 512)
    from (
        select string_agg(
            format('%s %s', s.name, coalesce(s.value #>> '{}', 'none')), ', ' order by s.name
        ) as changes
        from jsonb_each(
            audit_settings.after - '{created_at,updated_at}'::text[]
        ) as s (name, value)
        where s.value <> coalesce(audit_settings.before -> s.name, 'null')
    ) as c
    where audit_settings.before is null or c.changes is not null
$$;
