-- Purpose: Returns the function of a kind, and whether the login may run it.
-- Invariant: a login may run only functions that it may execute and whose owner it
-- trusts: itself, the owner of the database, or a superuser. So nobody who can declare
-- a kind can run code as another login. Raises: 22004.
-- Returns: one row; none if the kind is not a function.
-- Column may_run: whether the login may run it; false if the function does not exist.
-- Column is_batch: whether the function takes the payloads of many jobs.
-- Column run: the schema and the name of the function.
-- Column retry_on: the errors that are retried, by SQLSTATE or class.
-- Example: select * from jobq_internal.get_call('send_email');
create or replace function jobq_internal.get_call(kind text)
returns table (may_run boolean, is_batch boolean, run text[], retry_on text[]) language sql stable
security definer set search_path = pg_catalog, pg_temp as $$
    select jobq_private.check_given('kind', num_nulls(get_call.kind));
    select
        coalesce(f.may_execute and jobq_private.is_trusted(f.owner, session_user), false),
        coalesce(f.is_batch, false), parse_ident(k.run),
        coalesce(k.retry_on, '{08,40,53,55,57}')
    from jobq_private.kind as k
    left join lateral jobq_private.sql_function(k.run) as f on true
    where k.kind = get_call.kind
    and k.run is not null
$$;
grant execute on function jobq_internal.get_call to jobq_worker;
