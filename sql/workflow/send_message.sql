-- Purpose: Sends a message to a job, which receives those of a name in their order; returns
-- its number.
-- Invariant: part of the caller's transaction. A message is a signal with a number, from 1
-- and without gaps; waits for another transaction that sends to the same name. Messages are
-- kept as long as the job. Has no effect on a finished job.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name under which the job receives it, 1 to 200 characters
-- Argument payload: the message: any JSON up to max_payload_bytes
-- Returns: the number of the message among those of its name
-- Example: select jobq.send_message(:'waiting', 'chat', '"please use metric units"');
create or replace function jobq.send_message(job_id uuid, name text, payload jsonb default 'null')
returns integer language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job constant jobq.job := jobq.get_job(send_message.job_id);
    _number integer;
begin
    perform jobq_private.check_event(send_message.name, send_message.payload);
    perform jobq_private.check_argument(case when length(send_message.name) > 200
        then 'name must have 1 to 200 characters' end);
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when _job.finished_at is not null
        then format('job_id %s is %s: it cannot receive messages', _job.job_id, _job.state)
    end);
    loop
        _number := 1 + coalesce((
            select right(e.event, 9)::integer
            from jobq_private.event as e
            where e.event between jobq_private.message_event(_job.job_id, send_message.name, 0)
                and jobq_private.message_event(_job.job_id, send_message.name, 999999999)
            and length(e.event) = length(send_message.name) + 55
            order by e.event desc
            limit 1
        ), 0);
        -- false: another transaction has sent the message of this number meanwhile
        exit when jobq_private.store_event(
            jobq_private.message_event(_job.job_id, send_message.name, _number), _job.job_id,
            send_message.payload
        );
    end loop;
    return _number;
end
$$;
grant execute on function jobq.send_message to jobq_producer, jobq_worker, jobq_operator;
