-- Purpose: create a history table's partition of one day (UTC), and move rows of that day there
-- from the default partition.
-- Invariant: locks the parent first, so that completions wait there and do not fail on their way
-- to the default partition, and no reader looks only there for rows that were moved. Waits at most
-- 100 ms for a lock.
-- Raises: 55P03 if the lock is not available.
create or replace function jobq_private.make_partition(relation text, day date)
returns boolean language plpgsql set lock_timeout = '100ms' set timezone = 'UTC' as $$
declare
    _column constant text :=
        case relation when 'job_log' then 'logged_at' else 'finished_at' end;
    _name constant text := format('%s_%s', relation, to_char(day, 'YYYYMMDD'));
begin
    if to_regclass('jobq_private.' || _name) is not null then
        return false;
    end if;
    execute format('lock table only jobq_private.%I in access exclusive mode', relation);
    execute format(
        'lock table jobq_private.%I in access exclusive mode', relation || '_default'
    );
    execute format(
        'create table jobq_private.%I (like jobq_private.%I'
        ' including defaults including constraints)', _name, relation
    );
    execute format(
        'with moved as (delete from jobq_private.%1$I as d'
        ' where d.%2$I >= %3$L and d.%2$I < %4$L returning d.*)'
        ' insert into jobq_private.%5$I select m.* from moved as m',
        relation || '_default', _column, day, day + 1, _name
    );
    execute format(
        'alter table jobq_private.%I attach partition jobq_private.%I'
        ' for values from (%L) to (%L)', relation, _name, day, day + 1
    );
    return true;
end
$$;
