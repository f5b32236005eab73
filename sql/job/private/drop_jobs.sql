-- Purpose: delete jobs that succeed and leave no trace, and from whose ends nothing else follows:
-- what archive_jobs() does with them, without what it carries to the archive.
-- Invariant: only the attempt that holds the lease goes. Jobs are found, locked and passed over as
-- by archive_jobs(), and what is left to it is not locked. Clients that wait for any of these jobs
-- are told. Returns which went, null for none. Raises: nothing.
create or replace function jobq_private.drop_jobs(
    job_ids uuid[], attempts integer[], skip_held boolean,
    out gone uuid[], out gone_attempts integer[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _attempt constant integer := case
        when attempts[1] = all(attempts) then attempts[1]
    end;
begin
    with ended as (
        delete from jobq_private.job as j
        where j.job_id = any(drop_jobs.job_ids)
        and case
            when _attempt is not null then j.attempt = _attempt
            else (j.job_id, j.attempt) in (
                select u.* from unnest(drop_jobs.job_ids, drop_jobs.attempts) as u
            )
        end
        and j.lease_expires_at is not null
        and j.keep[1] = '0'
        and num_nonnulls(j.lane_id, j.place, j.batch_id) = 0
        and not j.is_awaited
        and (
            not drop_jobs.skip_held
            or j.xmax = '0'
            or j.xmax = j.xmin
            or jobq_private.is_free(j.job_id)
        )
        returning j.job_id, j.attempt
    )
    select array_agg(e.job_id), array_agg(e.attempt)
    into drop_jobs.gone, drop_jobs.gone_attempts
    from ended as e;
    if drop_jobs.gone is null then
        return;
    end if;
    perform jobq_private.forget_traces(drop_jobs.gone, 1 < any(drop_jobs.gone_attempts));
    if jobq_private.is_held('awaiting', 0) then
        perform jobq_private.tell_ended(drop_jobs.gone);
    end if;
end
$$;

revoke all on function jobq_private.drop_jobs from public;

comment on function jobq_private.drop_jobs is
'Deletes jobs that succeed and leave no trace.';
