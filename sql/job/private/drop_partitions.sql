-- Purpose: drop the partitions of the history that are past retention.
-- Invariant: waits at most 100 ms for a lock; one that is not had is tried again at the
-- next call. Returns how many were dropped. Raises: nothing.
create or replace function jobq_private.drop_partitions()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
set timezone = 'UTC'
as $$
declare
    _oldest constant date := (
        now() - (select g.retention from jobq_private.setting as g)
    )::date;
    _partition text;
    _dropped bigint := 0;
begin
    for _partition in
        select c.relname
        from pg_catalog.pg_inherits as i
        join pg_catalog.pg_class as c on c.oid = i.inhrelid
        where i.inhparent in (
            'jobq_private.job_archive'::regclass, 'jobq_private.attempt'::regclass,
            'jobq_private.job_log'::regclass
        )
        and c.relname ~ '_[0-9]{8}$'
        and to_date(right(c.relname, 8), 'YYYYMMDD') < _oldest
    loop
        execute format('drop table jobq_private.%I', _partition);
        _dropped := _dropped + 1;
    end loop;
    return _dropped;
exception
    when lock_not_available then
        raise notice using
            message = 'a history table is in use; what is past retention is left to the next call';
        return 0;
end
$$;

revoke all on function jobq_private.drop_partitions from public;

comment on function jobq_private.drop_partitions is
'Drops the partitions of the history that are past retention.';
