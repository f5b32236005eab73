-- Purpose: Deletes the declaration of a kind; refused while it has live jobs or schedules.
-- Invariant: refused for an endpoint, which delete_definition() deletes. A job that another
-- transaction adds meanwhile is not seen; like the jobs of every undeclared kind it runs with the
-- settings of its queue. Raises: 22004, JQ004, JQ007, JQ008.
-- Example: select jobq.delete_kind('send_email_v1');
create or replace function jobq.delete_kind(kind text)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('kind', num_nulls(kind));
    perform jobq_private.check_problem('IS_ENDPOINT', (
        select format('kind %s', k.kind) from jobq_private.kind as k
        where k.kind = delete_kind.kind and k.delivery_version is not null
    ));
    perform jobq_private.forget_kind(delete_kind.kind);
    perform jobq_private.record_audit('delete_kind', delete_kind.kind);
end
$$;
grant execute on function jobq.delete_kind to jobq_operator;
