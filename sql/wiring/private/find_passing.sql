-- Purpose: find jobs without a key at this priority that the limits of their queue let start.
-- Invariant: jobs that a changed limit or a hold moves under a key make room for those behind
-- them, as often as moves_left says; at zero, the next claim continues here. The caller starts
-- the jobs; if the queue is limited, it charges them, and then looks here again.
create or replace function jobq_private.find_passing(
    queue text, max_jobs integer, except_kinds text[], kinds text[], priority integer,
    look jobq_private.queue_look, inout moves_left integer, out jobs tid[]
)
language plpgsql as $$
declare
    _left integer := max_jobs;
    _width integer := 1;
    _found tid[];
    _moved integer;
begin
    jobs := '{}';
    loop
        _found := jobq_private.find_jobs(
            queue, greatest(_left, _width), except_kinds, kinds, priority
        );
        _moved := cardinality(_found);
        if look.has_kind_limits and _found <> '{}' then
            select m.jobs into _found from jobq_private.move_jobs(_found, null) as m;
        end if;
        _moved := _moved - cardinality(_found);
        if cardinality(_found) > _left then
            -- Else the session's next claims would begin behind these, for half a second.
            perform set_config('jobq.hint_' || (hashtext(queue) & 1023), '', false);
            _found := _found[:_left];
        end if;
        if look.is_limited and _found <> '{}' then
            select p.jobs into _found from jobq_private.pass_limits(queue, _found, null, look) as p;
        end if;
        jobs := jobs || _found;
        _left := _left - cardinality(_found);
        exit when _left = 0 or _moved = 0 or look.is_limited and jobs <> '{}';
        _width := least(100, 2 * _width);
        moves_left := moves_left - 1;
        exit when moves_left = 0;
    end loop;
end
$$;
