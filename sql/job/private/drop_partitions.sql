-- Purpose: drop the partitions of the history that are past retention.
-- Invariant: jobs that others still need go back to the history, and so to a partition of
-- their day that make_partitions() makes anew. Waits at most 100 ms for a lock; one that is not had is tried again at the
-- next call. Ten at most, since each keeps a score of places in the server's lock table until the commit.
-- Returns how many were dropped. Raises: nothing.
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
    _kept jobq_private.job_archive[];
    _is_needed boolean;
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
        exit when _dropped = 10;
        _kept := null;
        if _partition like 'job_archive%' then
            execute format(
                'select array_agg(row(a.*)::jobq_private.job_archive) from jobq_private.%I as a'
                ' where a.job_id in (select jobq_private.needed_jobs(%L, %L))',
                _partition, to_date(right(_partition, 8), 'YYYYMMDD'), _oldest
            ) into _kept;
            if _kept is not null then
                execute format(
                    'select count(*) = cardinality($1) from jobq_private.%I', _partition
                ) into _is_needed using _kept;
                continue when _is_needed;
            end if;
        end if;
        execute format('drop table jobq_private.%I', _partition);
        insert into jobq_private.job_archive select k.* from unnest(_kept) as k;
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
