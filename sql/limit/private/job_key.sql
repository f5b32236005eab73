-- Purpose: refuse to take a job out of its key, or to give a running job's slot to
-- another queue. No hot statement fires it. Raises: JQ002.
create or replace function jobq_private.keep_key()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if (old.concurrency_key is not null
        and (new.key_id is null
            or new.concurrency_key is distinct from old.concurrency_key
            or (new.queue, new.key_id) <> (old.queue, old.key_id)
            and new.key_id
                <> jobq_private.key_of(new.queue, new.kind, new.concurrency_key, false)))
    or (old.slot is not null and new.queue <> old.queue)
    then
        perform jobq_private.raise_error('IMMUTABLE', format(
            'job_id %s: its key_id is that of its concurrency key, and a slot is of one queue',
            old.job_id
        ));
    end if;
    return new;
end
$$;

create or replace trigger job_key
before update of concurrency_key, key_id, queue on jobq_private.job
for each row execute function jobq_private.keep_key();
