-- Purpose: have partitions for today and the week ahead.
-- Invariant: what a missing partition would hold goes to the default partition, and from
-- there to one for its day, also when that has passed; so nothing outlives its retention.
-- A lock that is not had at once is tried again at the next call. Returns how many were
-- made. Raises: nothing.
create or replace function jobq_private.make_partitions()
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
    _relation text;
    _day date;
    _made bigint := 0;
begin
    foreach _relation in array array['job_archive', 'attempt', 'job_log'] loop
        for _day in execute format(
            'select %L::date + n from generate_series(0, 7) as n'
            ' union select d.%I::date from jobq_private.%I as d',
            now()::date,
            case _relation when 'job_log' then 'logged_at' else 'finished_at' end,
            _relation || '_default'
        ) loop
            _made := _made + jobq_private.make_partition(_relation, _day)::integer;
        end loop;
    end loop;
    return _made;
exception
    when lock_not_available then
        raise notice using
            message = 'a history table is in use; its partitions are left to the next call';
        return 0;
end
$$;

revoke all on function jobq_private.make_partitions from public;

comment on function jobq_private.make_partitions is
'Makes partitions of the history ahead of time.';
