-- Purpose: drop one partition of the history that is past its retention; return how many were
-- dropped.
-- Invariant: one per call, so that its locks end with the transaction. Jobs that others still
-- need stay, in a partition of their own; with more than 10,000 of them the day stays complete.
-- Waits at most 100 ms for a lock.
create or replace function jobq_private.drop_partitions()
returns bigint language plpgsql set lock_timeout = '100ms' set timezone = 'UTC' as $$
declare
    _most_kept constant integer := 10000;
    _oldest constant date := (
        now() - (select g.retention from jobq_private.setting as g)
    )::date;
    _parent text;
    _partition text;
    _day date;
    _kept uuid[];
    _is_whole boolean;
begin
    for _parent, _partition, _day in
        select p.relname, c.relname, to_date(right(c.relname, 8), 'YYYYMMDD')
        from pg_catalog.pg_inherits as i
        join pg_catalog.pg_class as c on c.oid = i.inhrelid
        join pg_catalog.pg_class as p on p.oid = i.inhparent
        where i.inhparent in (
            'jobq_private.job_archive'::regclass, 'jobq_private.attempt'::regclass,
            'jobq_private.job_log'::regclass
        )
        and c.relname ~ '_[0-9]{8}$'
        order by 3, 2
    loop
        -- Not in the query, which could read the name of any relation as a date.
        exit when _day >= _oldest;
        _kept := '{}';
        if _parent = 'job_archive' then
            _kept := array(
                select n.job_id
                from jobq_private.on_forget(_day, _day + 1, null, _most_kept + 1) as n
            );
            execute format(
                'select count(*) <= $1 from (select from jobq_private.%I limit $1 + 1) as p',
                _partition
            ) into _is_whole using cardinality(_kept);
            continue when _kept <> '{}' and (_is_whole or cardinality(_kept) > _most_kept);
        end if;
        begin
            if _kept <> '{}' then
                -- Nobody redrives or prunes a job of the day while it is copied.
                execute format(
                    'lock table jobq_private.%I in share row exclusive mode', _partition
                );
                execute format(
                    'create table jobq_private.kept (like jobq_private.%I'
                    ' including defaults including constraints)', _parent
                );
                execute format(
                    'insert into jobq_private.kept select p.* from jobq_private.%I as p'
                    ' where p.job_id = any($1)', _partition
                ) using _kept;
            end if;
            execute format('drop table jobq_private.%I', _partition);
            if _kept <> '{}' then
                execute format('alter table jobq_private.kept rename to %I', _partition);
                execute format(
                    'alter table jobq_private.%I attach partition jobq_private.%I'
                    ' for values from (%L) to (%L)', _parent, _partition, _day, _day + 1
                );
            end if;
            return 1;
        exception
            when lock_not_available then
                raise notice using
                    message = 'a history table is in use; the next call removes expired jobs';
        end;
    end loop;
    return 0;
end
$$;
