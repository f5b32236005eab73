-- Purpose: record the attempt that ended a job without success, and refuse rows of jobs that have
-- not ended.
-- Invariant: After the insert, because PostgreSQL checks the partition's bounds again if a
-- trigger fires before it. Raises: JQ002.
create or replace function jobq_private.archive_birth()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _is_dead constant boolean := new.state = 'dead';
begin
    if new.state not in ('succeeded', 'dead', 'cancelled') then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s: a job cannot be archived as %s', new.job_id, new.state
        ));
    elsif new.previous_state = 'running' then
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error,
            error_details, endpoint, region
        )
        values (
            new.job_id, new.attempt, new.state, new.claimed_at, new.finished_at, new.worker,
            case when _is_dead then new.last_error_code end,
            case when _is_dead then new.last_error end,
            case when _is_dead then new.last_error_details end,
            case when new.delivery_version is not null then new.kind end,
            new.region
        );
    end if;
    return null;
end
$$;

create or replace trigger archive_birth
after insert on jobq_private.job_archive
for each row when (new.state <> 'succeeded')
execute function jobq_private.archive_birth();
