-- Purpose: for a list of edges sorted by parent: the index before each job's first
-- child, and finally the index of the last child.
create or replace function jobq_private.arrow_ends(arrows jobq_private.arrow[], size integer)
returns integer[] language sql immutable as $$
    select array_agg(c.before order by c.place)
    from (
        select
            p.place,
            (sum(coalesce(a.children, 0)) over (order by p.place) - coalesce(a.children, 0))::integer as before
        from generate_series(1, arrow_ends.size + 1) as p (place)
        left join (
            select w.parent, count(*) as children from unnest(arrow_ends.arrows) as w group by w.parent
        ) as a on a.parent = p.place
    ) as c
$$;
