-- Purpose: a time before which no end can be added to the archive.
-- Invariant: a transaction that ends jobs locks the archive (ROW EXCLUSIVE) before it reads the
-- clock, and releases the lock when its changes are visible (see archive_jobs). So once all
-- transactions are gone that held the lock after the clock was read here, a new snapshot shows
-- all ends before that time. Null if they are not gone in time, or the caller is one of them.
create or replace function jobq_private.settled_at(patience interval)
returns timestamptz language plpgsql as $$
declare
    _at constant timestamptz := clock_timestamp();
    _archive constant oid := 'jobq_private.job_archive'::regclass;
    _database constant oid := (
        select d.oid from pg_database as d where d.datname = current_database()
    );
    _ending text[];
begin
    loop
        _ending := array(
            select l.virtualtransaction
            from pg_locks as l
            where l.locktype = 'relation'
            and l.database = _database
            and l.relation = _archive
            and l.mode = 'RowExclusiveLock'
            and l.granted
            and (_ending is null or l.virtualtransaction = any(_ending))
        );
        if _ending = '{}' then
            return _at;
        elsif clock_timestamp() > _at + patience then
            return null;
        end if;
        perform pg_sleep(0.002);
    end loop;
end
$$;
