-- Purpose: have partitions for today and the week ahead, and drop those past retention.
-- Invariant: what a missing partition would hold goes to the default partition, and from
-- there to one for its day, also when that has passed; so nothing outlives its retention.
-- A lock that is not had at once is tried again at the next call. Returns how many were
-- made and dropped. Raises: nothing.
create or replace function jobq_private.maintain_partitions(
    out made bigint, out dropped bigint
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
set timezone = 'UTC'
as $$
declare
    _today constant date := now()::date;
    _oldest constant date := (
        now() - (select g.retention from jobq_private.setting as g)
    )::date;
    _relation text;
    _day date;
    _partition text;
begin
    made := 0;
    dropped := 0;
    foreach _relation in array array['job_archive', 'attempt', 'job_log'] loop
        for _day in execute format(
            'select %L::date + n from generate_series(0, 7) as n'
            ' union select d.%I::date from jobq_private.%I as d',
            _today,
            case _relation when 'job_log' then 'logged_at' else 'finished_at' end,
            _relation || '_default'
        ) loop
            made := made + jobq_private.make_partition(_relation, _day)::integer;
        end loop;
        for _partition in
            select c.relname
            from pg_catalog.pg_inherits as i
            join pg_catalog.pg_class as c on c.oid = i.inhrelid
            where i.inhparent = to_regclass('jobq_private.' || _relation)
            and c.relname ~ '_[0-9]{8}$'
            and to_date(right(c.relname, 8), 'YYYYMMDD') < _oldest
        loop
            execute format('drop table jobq_private.%I', _partition);
            dropped := dropped + 1;
        end loop;
    end loop;
exception
    when lock_not_available then
        made := 0;
        dropped := 0;
        raise notice using
            message = 'a history table is in use; its partitions are left to the next call';
end
$$;

revoke all on function jobq_private.maintain_partitions from public;

comment on function jobq_private.maintain_partitions is
'Makes partitions ahead of time and drops those past retention.';
