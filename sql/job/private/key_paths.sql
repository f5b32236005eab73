-- Purpose: the paths in the declaration of a key: one, or several as the rows of an array, in
-- which nulls fill up shorter ones.
create or replace function jobq_private.key_paths(paths text[])
returns table (ordinal integer, path text[]) language sql immutable as $$
    select n, array(select m from unnest(paths[n:n]) as m where m is not null)
    from generate_subscripts(paths, 1) as n
    where array_ndims(paths) = 2
    union all
    select 1, paths
    where paths is not null and array_ndims(paths) is distinct from 2
$$;
