-- Purpose: create partitions for today and the next week, for the first day without them; return
-- how many.
-- Invariant: one day per call, the archive last, because completions wait for its lock until the
-- commit.
create or replace function jobq_private.make_partitions()
returns bigint language plpgsql set timezone = 'UTC' as $$
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
            message = 'a history table is in use; the next call creates its partitions';
        return 0;
end
$$;
