-- Purpose: change the number in the ids of this database.
-- Invariant: refused if jobs exist, because their ids contain the old number.
-- Statements that call own_shard were planned with it as a constant; they are planned
-- again. Raises: 22023.
create or replace function jobq_private.become_shard(shard_id integer)
returns void
language plpgsql
as $$
begin
    if exists (select from jobq_private.job)
    or exists (select from jobq_private.job_archive)
    or exists (select from jobq_private.schedule) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'this database has jobs or schedules, so its number cannot be changed: '
            || jobq_private.own_shard()
        );
    end if;
    execute format(
        'create or replace function jobq_private.own_shard() returns integer '
        'language sql immutable parallel safe security invoker as %L',
        'select ' || become_shard.shard_id
    );
end
$$;
