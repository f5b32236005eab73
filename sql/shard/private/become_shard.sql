-- Purpose: change the number in the ids of this database.
-- Invariant: refused if jobs exist, because their ids contain the old number. A router
-- has put_shard(), but neither this nor jobs. Raises: 22023.
create or replace function jobq_private.become_shard(shard_id integer)
returns void language plpgsql as $$
begin
    perform jobq_private.check_argument((
        select 'this database has jobs or schedules, so its number cannot be changed: ' || g.shard_id
        from jobq_private.setting as g
        where exists (select from jobq_private.job)
        or exists (select from jobq_private.job_archive)
        or exists (select from jobq_private.schedule)
    ));
    update jobq_private.setting as g set shard_id = become_shard.shard_id;
end
$$;
