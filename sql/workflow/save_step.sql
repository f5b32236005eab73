-- Purpose: Saves the result of a step of a job, and returns the saved result: the first
-- one is kept.
-- Invariant: the first value is kept; later calls return it, and the caller must continue with
-- it. On a handler's own connection, the step commits with what the handler has written.
-- Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006.
-- Argument name: the step's name, 1 to 256 characters, unique within the job, and not beginning
-- with event:
-- Argument value: the result of the step: any JSON up to max_payload_bytes; null is stored as
-- JSON null
-- Returns: the saved value; the earlier one if the step was already saved
-- Example: select jobq.save_step(:'running', 1, 'charge', '{"charge_id": 7}');
create or replace function jobq.save_step(job_id uuid, attempt integer, name text, value jsonb)
returns jsonb language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _value jsonb;
    _outcome text;
begin
    select s.value, s.outcome into _value, _outcome
    from jobq_internal.save_steps(
        array[save_step.job_id], array[save_step.attempt], array[save_step.name],
        jsonb_build_array(save_step.value)
    ) as s;
    if _outcome = 'lost' then
        perform jobq_private.refuse_attempt(save_step.job_id, save_step.attempt);
    end if;
    return _value;
end
$$;
grant execute on function jobq.save_step to jobq_worker;
