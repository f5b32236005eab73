-- Purpose: Returns the login of the session and the scopes of its roles.
-- Invariant: reads only the roles of the session's user. Raises: nothing.
-- Returns: a JSON object: login, and scopes, an array of some of produce, work, operate and read.
-- Example: select jobq_http.show_login() ->> 'login';
create or replace function jobq_http.show_login()
returns json language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select json_build_object(
        'login', session_user,
        'scopes', coalesce(json_agg(s.scope order by s.scope) filter (
            where pg_has_role(session_user, s.role, 'usage')
        ), '[]')
    )
    from (
        values
        ('produce', 'jobq_producer'), ('work', 'jobq_worker'),
        ('operate', 'jobq_operator'), ('read', 'jobq_reader')
    ) as s (scope, role)
$$;
grant execute on function jobq_http.show_login
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
