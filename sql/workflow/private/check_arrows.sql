-- Purpose: refuse a graph with a cycle, and show the cycle.
-- Invariant: a graph that lists parents before children has no cycle and is not searched; in
-- others, a search in depth visits each job and edge once. Reads nothing. Raises: 22023.
create or replace function jobq_private.check_arrows(arrows jobq_private.arrow[], names text[])
returns void language plpgsql stable as $$
declare
    _children constant integer[] := array(select a.child from unnest(arrows) as a order by a.parent);
    _ends constant integer[] := jobq_private.arrow_ends(arrows, cardinality(names));
    _next integer[] := _ends;
    _depth integer[] := array_fill(0, array[cardinality(names)]);  -- in the path; -1 when done
    _path integer[] := '{}'::integer[];
    _top integer;
    _at integer;
begin
    if not exists (select from unnest(arrows) as a where a.parent >= a.child) then
        return;
    end if;
    for _root in 1 .. cardinality(names) loop
        continue when _depth[_root] <> 0;
        _top := 1;
        _path[1] := _root;
        _depth[_root] := 1;
        while _top > 0 loop
            _at := _path[_top];
            if _next[_at] = _ends[_at + 1] then
                _depth[_at] := -1;
                _top := _top - 1;
                continue;
            end if;
            _next[_at] := _next[_at] + 1;
            _at := _children[_next[_at]];
            if _depth[_at] > 0 then
                _path := _path[_depth[_at]:_top] || _at;
                perform jobq_private.raise_error('GRAPH_CYCLE', (
                    select string_agg(
                        case when length(n.name) > 64 then left(n.name, 63) || '…' else n.name end,
                        ' waits for ' order by p.n desc
                    )
                    from unnest(_path[greatest(cardinality(_path) - 19, 1):])
                        with ordinality as p (place, n)
                    cross join lateral (select names[p.place]) as n (name)
                ) || case when cardinality(_path) > 20 then ' waits for …' else '' end);
            elsif _depth[_at] = 0 then
                _top := _top + 1;
                _path[_top] := _at;
                _depth[_at] := _top;
            end if;
        end loop;
    end loop;
end
$$;
