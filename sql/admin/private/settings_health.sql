-- Purpose: settings of roles and of the database that threaten jobq's guarantees.
-- Invariant: reads only, from the catalog, because another role's session does not show
-- them; covers roles that can act as one of jobq's. Raises: nothing.
create or replace function jobq_private.settings_health()
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language sql
as $$
    select
        'role_settings', count(*) = 0, 'failure',
        coalesce(
            left(string_agg(format('%s for %s', w.setting, w.holder), ', ' order by w.nth), 500),
            'no role or database setting endangers jobs'
        ),
        left(
            string_agg(format('alter %s reset %s', w.holder, w.name), '; ' order by w.nth), 500
        )
    from (
        select
            s.setting, split_part(s.setting, '=', 1) as name,
            case
                when c.setrole = 0 and c.setdatabase <> 0
                then format('database %I', d.datname)
                else concat_ws(
                    ' in database ', 'role ' || coalesce(quote_ident(r.rolname), 'all'),
                    quote_ident(d.datname)
                )
            end as holder,
            row_number() over (order by s.setting, r.rolname, d.datname) as nth
        from pg_db_role_setting as c
        cross join unnest(c.setconfig) as s (setting)
        left join pg_database as d on d.oid = c.setdatabase
        left join pg_roles as r on r.oid = c.setrole
        where s.setting ~*
        '^((synchronous_commit|row_security)=(off|false|no|0)|session_replication_role=replica|default_transaction_read_only=(on|true|yes|1))$'
        and (c.setdatabase = 0 or d.datname = current_database())
        and (
            c.setrole = 0
            or exists (
                select from pg_roles as g
                where g.rolname in (
                    'jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator'
                )
                and pg_has_role(c.setrole, g.oid, 'member')
            )
        )
    ) as w
    union all
    select
        'connect', not (c.relrowsecurity and has_database_privilege(
            'public', current_database(), 'connect'
        )),
        'warning',
        case when has_database_privilege('public', current_database(), 'connect')
            then 'every role of the server may connect to this database'
            else 'only roles that were granted it may connect to this database'
        end,
        format('revoke connect on database %I from public, and grant it to the tenants',
            current_database())
    from pg_class as c
    where c.oid = 'jobq_private.job'::regclass
$$;
