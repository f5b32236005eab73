-- Purpose: Restricts every login to the queues granted to it; false ends this. Only for
-- jobq_owner.
-- Invariant: forces row-level security on every table that has a policy, so it also applies
-- inside jobq's functions; while it is off, the policies cost nothing. Waits for open
-- transactions, at most 5 s per table, and starts again after a deadlock with one of them. Only
-- for jobq_owner. Raises: 22004, 55P03.
-- Argument enforced: false removes the restriction.
-- Example: select jobq.enforce_queue_grants();
create or replace function jobq.enforce_queue_grants(enforced boolean default true)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp
set lock_timeout = '5s' as $$
declare
    _table text;
begin
    perform jobq_private.check_given('enforced', num_nulls(enforced));
    for _attempt in 1..10 loop
        begin
            for _table in
                select distinct c.relname
                from pg_catalog.pg_policy as p
                join pg_catalog.pg_class as c on c.oid = p.polrelid
                where c.relnamespace = 'jobq_private'::regnamespace
                order by c.relname
            loop
                if enforced then
                    execute format(
                        'alter table jobq_private.%I enable row level security,'
                        ' force row level security', _table
                    );
                else
                    execute format('alter table jobq_private.%I disable row level security', _table);
                end if;
            end loop;
            exit;
        exception when deadlock_detected then
            if _attempt = 10 then
                raise;
            end if;
        end;
    end loop;
    perform jobq_private.record_audit(
        'enforce_queue_grants', case when enforced then 'on' else 'off' end
    );
end
$$;
