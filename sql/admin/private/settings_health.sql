-- Purpose: settings of roles and of the database that threaten jobq's guarantees.
-- Invariant: reads the catalog, because another role's session does not show them;
-- covers roles that can act as one of jobq's.
create or replace function jobq_private.settings_health()
returns setof jobq_private.finding language sql as $$
    (
        select
            'role_settings', false, format('%s for %s', s.setting, h.holder),
            format('alter %s reset %s', h.holder, split_part(s.setting, '=', 1))
        from pg_db_role_setting as c
        cross join unnest(c.setconfig) as s (setting)
        left join pg_database as d on d.oid = c.setdatabase
        left join pg_roles as r on r.oid = c.setrole
        cross join lateral (
            select case
                when c.setrole = 0 and c.setdatabase <> 0 then format('database %I', d.datname)
                else concat_ws(
                    ' in database ', 'role ' || coalesce(quote_ident(r.rolname), 'all'),
                    quote_ident(d.datname)
                )
            end
        ) as h (holder)
        where s.setting ~* (
            '^((synchronous_commit|row_security)=(off|false|no|0)|session_replication_role=replica'
            || '|default_transaction_read_only=(on|true|yes|1))$'
        )
        and (c.setdatabase = 0 or d.datname = current_database())
        and (c.setrole = 0 or exists (
            select from pg_roles as g
            where g.rolname in ('jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator')
            and pg_has_role(c.setrole, g.oid, 'member')
        ))
        order by s.setting, r.rolname, d.datname
    )
    union all
    select
        'connect', not (c.relrowsecurity and p.is_open),
        case when p.is_open then 'every role of the server may connect to this database'
            else 'only roles that were granted it may connect to this database' end,
        format('revoke connect on database %I from public, and grant it to the tenants',
            current_database())
    from pg_class as c
    cross join has_database_privilege('public', current_database(), 'connect') as p (is_open)
    where c.oid = 'jobq_private.job'::regclass
$$;
