-- Purpose: a list as text: whole items up to 500 characters, and the number of the others.
-- Invariant: always contains the first item, up to 2,000 characters.
create or replace function jobq_private.listed(parts text[], separator text default ', ')
returns text language sql immutable as $$
    select
        string_agg(left(p.part, 2000), listed.separator order by p.nth) filter (where p.fits)
        || coalesce(' and ' || nullif(count(*) filter (where not p.fits), 0) || ' more', '')
    from (
        select
            n.part, n.nth,
            n.nth = 1 or sum(length(n.part || listed.separator)) over (order by n.nth) <= 500 as fits
        from unnest(listed.parts) with ordinality as n (part, nth)
    ) as p
$$;
