-- Purpose: the job whose end an event stands for; null for other events.
create or replace function jobq_private.ended_job(event text)
returns uuid
language sql
immutable
as $$
    select substring(
        event from '^job_ended:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$'
    )::uuid
$$;
