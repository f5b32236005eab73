-- Purpose: the number of this database in its cluster, or 0. put_shard() replaces it, so that ids
-- need no lookup.
-- creates: function jobq_private.own_shard
do $do$
begin
    if to_regprocedure('jobq_private.own_shard()') is null then
        create function jobq_private.own_shard()
        returns integer
        language sql
        immutable
        parallel safe
        security invoker
        as 'select 0';
    end if;
end
$do$;
