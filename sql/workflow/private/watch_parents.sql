-- Purpose: mark live parents as awaited, and return those whose ends will add rows to pending:
-- all but those that another transaction holds.
-- Invariant: the end of a parent adds a row only if the parent was marked, and the edge
-- committed, before its end locked the row. So the marked ones are locked until the commit.
create or replace function jobq_private.watch_parents(parents uuid[], queues text[])
returns uuid[] language plpgsql as $$
begin
    update jobq_private.job as j set is_awaited = true
    where j.ctid = any(array(
        select p.ctid
        from jobq_private.job as p
        where p.job_id = any(parents)
        and not p.is_awaited and (queues is null or p.queue = any(queues))
        for no key update skip locked
    ));
    return array(
        select p.job_id
        from jobq_private.job as p
        where p.job_id = any(parents)
        and p.is_awaited and (queues is null or p.queue = any(queues))
        for key share skip locked
    );
end
$$;
