-- Purpose: for each of these jobs that is blocked, one that blocks it: an ancestor over
-- open edges that waits for no job itself; in the same order, null for the others.
-- Invariant: reads only; reads each edge among them once, and none beyond.
create or replace function jobq_private.holders_among(job_ids uuid[])
returns uuid[]
language plpgsql
stable
as $$
declare
    _arrows jobq_private.arrow[];
    _first integer[];
    _children integer[];
    _reached integer[];
    _holder integer[] := array_fill(null::integer, array[cardinality(job_ids)]);
    _child integer;
    _done integer := 0;
begin
    select array_agg(row(c.place, p.place)::jobq_private.arrow) into _arrows
    from unnest(holders_among.job_ids) with ordinality as c (job_id, place)
    join jobq_private.job as j on j.job_id = c.job_id and j.state = 'blocked'
    join jobq_private.edge as e on e.child = c.job_id and e.is_open
    join unnest(holders_among.job_ids) with ordinality as p (job_id, place) on p.job_id = e.parent;
    _first := jobq_private.arrow_ends(_arrows, cardinality(job_ids));
    _children := array(select a.child from unnest(_arrows) as a order by a.parent);
    _reached := array(
        select distinct a.parent from unnest(_arrows) as a
        except
        select a.child from unnest(_arrows) as a
    );
    foreach _child in array _reached loop
        _holder[_child] := _child;
    end loop;
    while _done < cardinality(_reached) loop
        _done := _done + 1;
        for _n in _first[_reached[_done]] + 1 .. _first[_reached[_done] + 1] loop
            _child := _children[_n];
            if _holder[_child] is null then
                _holder[_child] := _holder[_reached[_done]];
                _reached[cardinality(_reached) + 1] := _child;
            end if;
        end loop;
    end loop;
    return array(
        select holders_among.job_ids[h.place]
        from unnest(_holder) with ordinality as h (place, n)
        order by h.n
    );
end
$$;
