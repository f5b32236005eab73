-- Purpose: return those of a claim's locked jobs that wait under the right key, and
-- move the others, which were stored before their kind got or lost limits, to theirs.
create or replace function jobq_private.move_jobs(inout jobs tid[], inout slots smallint[])
language plpgsql as $$
declare
    _moved uuid[];
    _rows tid[];
begin
    with moved as (
        update jobq_private.job as j
        set key_id = k.key_id
        from (
            select o.ctid as row, jobq_private.key_of(
                o.queue, o.kind, o.concurrency_key, exists (
                    select from jobq_private.job_limits(o) as l where l.kind is not null
                )
            ) as key_id
            from jobq_private.job as o
            where o.ctid = any(move_jobs.jobs)
            offset 0
        ) as k
        where j.ctid = k.row and k.key_id is not null and k.key_id is distinct from j.key_id
        returning j.job_id, k.row
    )
    select array_agg(m.job_id), array_agg(m.row) into _moved, _rows from moved as m;
    if _moved is not null then
        perform jobq_private.open_keys(_moved);
        select coalesce(array_agg(u.job order by u.n), '{}'), array_agg(u.slot order by u.n)
        into move_jobs.jobs, move_jobs.slots
        from unnest(move_jobs.jobs, move_jobs.slots) with ordinality as u (job, slot, n)
        where u.job <> all(_rows);
    end if;
end
$$;
