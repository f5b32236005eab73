-- Verify jobq:schedule_tables on pg
begin;

select null::jobq_private.cron;

do $$
begin
    assert (
        select count(*) = 15
        from pg_attribute as a
        join pg_type as t on t.typrelid = a.attrelid
        where t.oid = 'jobq_private.cron'::regtype
        and a.attnum > 0
        and not a.attisdropped
    ), 'jobq_private.cron does not have its 15 attributes';
end
$$;

select schedule_id, name, version, parsed, next_run_at, last_tick_at, retry_at, failure, login
from jobq_private.schedule
where false;

rollback;
