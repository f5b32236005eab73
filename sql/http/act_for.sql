-- Purpose: Sets on whose behalf the transaction acts; the audit log stores it with the login.
-- Invariant: chosen by the login, and without any effect on rights; the audit also
-- records the login. Raises: 22004, 22023.
-- Argument name: the person or client, 1 to 256 characters.
-- Example: select jobq_http.act_for('alice@example.org');
create or replace function jobq_http.act_for(name text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('name', num_nulls(act_for.name));
    perform jobq_private.check_argument(case
        when length(act_for.name) not between 1 and 256 then 'name must have 1 to 256 characters'
    end);
    perform set_config('jobq.acting_for', act_for.name, true);
end
$$;
grant execute on function jobq_http.act_for
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
