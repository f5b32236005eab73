-- Purpose: have partitions for today and the week ahead: of the first day that lacks some.
-- Invariant: a day at a time, and the archive's last, since completions wait for its lock until
-- the commit; maintain() comes back for the next. What a missing partition would hold goes to the default partition, and from
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
    _first date;
    _made bigint := 0;
begin
    for _day, _relation in
        select d.day, d.relation
        from (
            select now()::date + n.days, r.relation
            from generate_series(0, 7) as n (days)
            cross join unnest(array['job_archive', 'attempt', 'job_log']) as r (relation)
            union
            select a.finished_at::date, 'job_archive' from jobq_private.job_archive_default as a
            union
            select a.finished_at::date, 'attempt' from jobq_private.attempt_default as a
            union
            select l.logged_at::date, 'job_log' from jobq_private.job_log_default as l
        ) as d (day, relation)
        order by d.day, d.relation = 'job_archive'
    loop
        exit when _day > _first;
        if jobq_private.make_partition(_relation, _day) then
            _first := _day;
            _made := _made + 1;
        end if;
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
'Makes partitions of the history ahead of time, a day at a time.';
