-- Purpose: one cycle of a graph as text: a waits for b waits for a; a long one is cut,
-- with ….
-- Invariant: waiting has the number of remaining parents of each job; from a job with
-- one, the parents can be followed without end. Reads nothing.
create or replace function jobq_private.cycle_among(arrows jobq_private.arrow[], names text[], waiting integer[])
returns text
language plpgsql
immutable
parallel safe
as $$
declare
    _parent integer[] := array_fill(0, array[cardinality(names)]);
    _arrow jobq_private.arrow;
    _seen integer[] := _parent;
    _path integer[] := '{}'::integer[];
    _at integer;
begin
    for _arrow in
        select a.* from unnest(arrows) as a where waiting[a.child] > 0 and waiting[a.parent] > 0
        order by a.child desc
    loop
        _parent[_arrow.child] := _arrow.parent;
        _at := _arrow.child;
    end loop;
    while _seen[_at] = 0 loop
        _path := _path || _at;
        _seen[_at] := cardinality(_path);
        _at := _parent[_at];
    end loop;
    _path := _path[_seen[_at]:] || _at;
    return (
        select string_agg(
            case when length(n.name) > 64 then left(n.name, 63) || '…' else n.name end,
            ' waits for ' order by p.n
        ) || case when cardinality(_path) > 20 then ' waits for …' else '' end
        from unnest(_path[:20]) with ordinality as p (place, n)
        cross join lateral (select names[p.place]) as n (name)
    );
end
$$;
