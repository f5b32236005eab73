-- Purpose: drop a history table's partition of one day, but for these jobs, which get a partition of
-- their own. Raises: 55P03 if a lock is not available.
create or replace function jobq_private.drop_partition(
    parent text, partition text, day date, kept uuid[]
)
returns void
language plpgsql
as $$
begin
    if kept = '{}' then
        execute format('drop table jobq_private.%I', partition);
        return;
    end if;
    -- Nobody redrives or prunes a job of the day while it is copied.
    execute format('lock table jobq_private.%I in share row exclusive mode', partition);
    execute format(
        'create table jobq_private.kept (like jobq_private.%I'
        ' including defaults including constraints)', parent
    );
    execute format(
        'insert into jobq_private.kept select p.* from jobq_private.%I as p'
        ' where p.job_id = any($1)', partition
    ) using kept;
    execute format('drop table jobq_private.%I', partition);
    execute format('alter table jobq_private.kept rename to %I', partition);
    execute format(
        'alter table jobq_private.%I attach partition jobq_private.%I'
        ' for values from (%L) to (%L)', parent, partition, day, day + 1
    );
end
$$;
