-- Purpose: perform the transition when state is updated in the view.
-- Invariant: accepts only the state with the worker, run_at, result and error of the
-- change; the tables' own triggers and foreign key check it, as for every other writer.
-- A row that another transaction has changed meanwhile counts as not found.
-- Raises: 22023, JQ002, JQ003, JQ004, JQ005, JQ006, 23503.
-- Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.update_from_view()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _free constant text[] := array[
        'state', 'worker', 'run_at', 'result', 'last_error', 'last_error_code', 'cancel_reason'
    ];
begin
    perform jobq_private.check_problem('IMMUTABLE', case
        when new.state = old.state or to_jsonb(new) - _free <> to_jsonb(old) - _free
        then format('job_id %s: an update of jobq.job can change only the state', old.job_id)
    end);
    perform jobq_private.check_argument(case
        when new.run_at is null then 'run_at must not be null'
        when length(new.worker) not between 1 and 256 then 'worker must have 1 to 256 characters'
        when length(new.cancel_reason) > 512 then 'cancel_reason must have at most 512 characters'
        when length(new.last_error_code) > 128 then 'last_error_code must have at most 128 characters'
    end);
    if old.state in ('dead', 'cancelled') and new.state in ('queued', 'blocked') then
        perform from jobq_private.redrive_jobs(
            array[old.job_id], array[old.finished_at], target => new.state
        );
    elsif old.finished_at is not null then
        update jobq_private.job_archive as a
        set state = new.state
        where a.job_id = old.job_id and a.finished_at = old.finished_at;
    elsif new.state = 'succeeded' and old.state = 'running' then
        perform jobq.complete(old.job_id, old.attempt, new.result);
    else
        update jobq_private.job as j
        set
            state = new.state, worker = new.worker, run_at = new.run_at,
            last_error = jobq_private.redacted(new.last_error),
            last_error_code = new.last_error_code, last_error_details = null,
            cancel_reason = new.cancel_reason
        where j.job_id = old.job_id and j.state = old.state and j.attempt = old.attempt;
    end if;
    if not found then
        if old.finished_at is not null then
            perform jobq_private.refuse_redrive(old);
        end if;
        return null;
    elsif old.finished_at is null then
        perform jobq_private.record_audit(
            'update to ' || new.state, old.job_id::text, new.cancel_reason
        );
    end if;
    if jobq_private.state_of(old.job_id) is null then
        return new;  -- it has ended, and leaves no trace
    end if;
    return jobq.get_job(old.job_id);  -- as the triggers have left it
end
$$;

create or replace trigger job_update
instead of update on jobq.job
for each row execute function jobq_private.update_from_view();
