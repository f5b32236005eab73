-- Purpose: refuse to take a job out of the lane of its concurrency key, or to give a running job's place
-- to another queue.
-- Invariant: whoever writes. Fires only for an UPDATE that names one of these columns, as no hot
-- statement does. Raises: JQ002.
create or replace function jobq_private.keep_lane()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if (old.concurrency_key is not null
        and (new.lane_id is null
            or (new.queue, new.lane_id) <> (old.queue, old.lane_id)
            and new.lane_id
                <> jobq_private.key_lane_id(new.queue, new.concurrency_key, new.kind)))
    or (old.place is not null and new.queue <> old.queue)
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: its lane is that of its concurrency key, and a place is of one queue',
            old.job_id
        ));
    end if;
    return new;
end
$$;

create or replace trigger job_lane
before update of concurrency_key, lane_id, queue on jobq_private.job
for each row execute function jobq_private.keep_lane();
