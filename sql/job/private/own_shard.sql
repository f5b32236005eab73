-- Purpose: return the number of this database in its cluster, or 0.
-- Invariant: a constant, so that ids need no table lookup. put_shard() replaces it. No SET
-- clause, so that it is inlined. Raises: nothing.
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
