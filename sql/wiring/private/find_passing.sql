-- Purpose: find jobs without a key at this priority that the limits of their queue let start.
-- Invariant: jobs that a changed limit or a hold moves under a key make room for those behind them,
-- as often as moves_left says; at zero, the next claim continues here. The caller starts the jobs.
create or replace function jobq_private.find_passing(
    queue text, max_jobs integer, except_kinds text[], kinds text[], priority integer,
    look jobq_private.queue_look, inout moves_left integer, out jobs tid[]
)
language plpgsql
as $$
declare
    _left integer := max_jobs;
    _width integer := 1;
    _batch record;
begin
    jobs := '{}';
    loop
        select p.jobs, p.moved into _batch
        from jobq_private.pass_queue(queue, jobq_private.find_jobs(
            queue, greatest(_left, _width), except_kinds, kinds, priority
        ), _left, look) as p;
        jobs := jobs || _batch.jobs;
        _left := _left - cardinality(_batch.jobs);
        exit when _left = 0 or _batch.moved = 0;
        _width := least(100, 2 * _width);
        moves_left := moves_left - 1;
        exit when moves_left = 0;
    end loop;
end
$$;
