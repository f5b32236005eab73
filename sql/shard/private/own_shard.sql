-- Purpose: the number of this database in its cluster; 0 where it is none's.
-- Invariant: a constant, so that ids cost no look at a table: put_shard writes it anew, and
-- what is there stays. No SET clause, so that it is inlined. Raises: nothing.
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

revoke all on function jobq_private.own_shard() from public;

comment on function jobq_private.own_shard() is
'The number of this database in its cluster.';
