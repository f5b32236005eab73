-- Purpose: refuse a graph with a cycle, and show the cycle.
-- Invariant: a graph that lists parents before children has no cycle and is not
-- searched; for others, each job and edge is visited once. Reads nothing. Raises:
-- 22023.
create or replace function jobq_private.check_arrows(arrows jobq_private.arrow[], names text[])
returns void
language plpgsql
stable
parallel safe
as $$
declare
    _size constant integer := cardinality(names);
    _left integer[] := array_fill(0, array[_size]);
    _first integer[];
    _children integer[];
    _free integer[];
    _done integer := 0;
    _place integer;
    _arrow jobq_private.arrow;
    _n integer := 0;
begin
    if not exists (select from unnest(arrows) as a where a.parent >= a.child) then
        return;
    end if;
    _children := array_fill(0, array[cardinality(arrows)]);
    for _arrow in select a.* from unnest(arrows) as a order by a.parent loop
        _n := _n + 1;
        _children[_n] := _arrow.child;
        _left[_arrow.child] := _left[_arrow.child] + 1;
    end loop;
    _first := jobq_private.arrow_ends(arrows, _size);
    _free := array(select p from generate_series(1, _size) as p where _left[p] = 0);
    while _done < cardinality(_free) loop
        _done := _done + 1;
        for _n in _first[_free[_done]] + 1 .. _first[_free[_done] + 1] loop
            _place := _children[_n];
            _left[_place] := _left[_place] - 1;
            if _left[_place] = 0 then
                _free[cardinality(_free) + 1] := _place;
            end if;
        end loop;
    end loop;
    if _done < _size then
        perform jobq_private.raise_error(
            'GRAPH_CYCLE', jobq_private.cycle_among(arrows, names, _left)
        );
    end if;
end
$$;
