-- Purpose: the event of a message of a job, by its number; in the order of numbers.
create or replace function jobq_private.message_event(job_id uuid, name text, number integer)
returns text language sql immutable as $$
    select format('message:%s:%s:%s', job_id, name, lpad(number::text, 9, '0'))
$$;
