-- Purpose: move live jobs into the archive in a final state, as one statement; delete those
-- that succeed and leave no trace.
-- Invariant: only the attempt that holds the lease moves a running job, and only to be
-- cancelled does a job move that waits; the archive's foreign key refuses an illegal change,
-- and its index by lane what is no success where the lane is null. The state is deliberately not
-- compared with 'running', and the ids stand as an array, so that only the primary key can
-- serve the delete, whatever the statistics say, in the order of ids that every batch uses. Where
-- all have one attempt, as mostly, that is compared, and no list of pairs is made; results are
-- found by id and attempt. Starting the statement costs more than one job does: so what follows from an
-- end is made where the row is at hand, and what counts the jobs carries two columns of them (offset 0).
-- What another transaction holds is waited for, or passed over where that is asked for.
-- The time is read by the statement that has locked the archive (ROW EXCLUSIVE), not before it:
-- listen_events() finds by that lock who may still add an earlier end.
-- Where none leaves a trace, the session's next successes are tried by drop_jobs() first.
-- Clients that wait for these jobs are told, also of those that did not move: they look.
-- Returns the positions, from 1, of those that did not move; null for none. Raises: 23503 for an
-- illegal change.
create or replace function jobq_private.archive_jobs(
    job_ids uuid[], attempts integer[], state text, results jsonb, skip_held boolean
)
returns bigint[]
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
    _ending constant integer := array_position(
        '{succeeded,dead,cancelled}', archive_jobs.state
    );
    _results jsonb;
    _moved integer;
    _finished_at timestamptz;
    _endings jobq_private.ending[];
    _gone uuid[];
    _gone_attempts integer[];
begin
    if archive_jobs.results is not null then
        if cardinality(archive_jobs.job_ids) = 1
            and num_nulls(archive_jobs.job_ids[1], archive_jobs.attempts[1]) = 0
        then
            _results := jsonb_build_object(
                concat(archive_jobs.job_ids[1], archive_jobs.attempts[1]),
                archive_jobs.results -> 0
            );
        else
            _results := (
                select jsonb_object_agg(r.job_id::text || r.attempt, r.result)
                from rows from (
                    unnest(archive_jobs.job_ids, archive_jobs.attempts),
                    jsonb_array_elements(archive_jobs.results)
                ) as r (job_id, attempt, result)
                where r.job_id::text || r.attempt is not null
            );
        end if;
    end if;
    with ended as (
        delete from jobq_private.job as j
        where j.job_id = any(archive_jobs.job_ids)
        and case
            when _attempt is not null then j.attempt = _attempt
            else (j.job_id, j.attempt) in (
                select u.* from unnest(archive_jobs.job_ids, archive_jobs.attempts) as u
            )
        end
        and (
            j.lease_expires_at is not null
            or archive_jobs.state in (j.state, 'cancelled')
        )
        and (
            not archive_jobs.skip_held
            or j.xmax = '0'
            or j.xmax = j.xmin
            or jobq_private.is_free(j.job_id)
        )
        returning
            case
                when num_nonnulls(j.lane_id, j.place, j.batch_id) > 0 or j.is_awaited
                    or j.keep[_ending] = '0'
                then row(
                    j.queue, j.job_id, j.attempt, j.batch_id, j.is_awaited, j.lane_id, j.kind,
                    j.concurrency_key, j.lane_id is not null or j.place is not null,
                    j.keep[_ending] = '0' and not j.is_awaited and j.batch_id is null
                )::jobq_private.ending
            end as ending,
            (select clock_timestamp()) as at,
            j.*
    ),
    stored as (
        insert into jobq_private.job_archive (
            state, previous_state, lane, finished_at, result, prune_at,
            -- columns of jobq_private.job but lease_expires_at, place, waits_since:
            job_id, created_at, run_at, claimed_at, heartbeat_at, cancel_requested_at,
            slot_at, expires_at, lease, timeout, schedule_id, attempt, uncounted,
            max_attempts, expiries, delivery_version, priority, is_awaited, region, queue,
            kind, lane_id, concurrency_key, batch_id, worker, idempotency_key, dedup_key,
            dedup, cancel_reason, last_error_code, last_error, last_error_details, keep,
            metadata, progress, payload
            -- end
        )
        select
            archive_jobs.state,
            case when g.state = archive_jobs.state then g.previous_state else g.state end,
            case when archive_jobs.state <> 'succeeded' then pg_backend_pid() & 1023 end,
            g.at,
            case
                when _results is not null
                then nullif(_results -> (g.job_id::text || g.attempt), 'null')
            end,
            g.at + g.keep[_ending],
            -- the same of g:
            g.job_id, g.created_at, g.run_at, g.claimed_at, g.heartbeat_at,
            g.cancel_requested_at, g.slot_at, g.expires_at, g.lease, g.timeout,
            g.schedule_id, g.attempt, g.uncounted, g.max_attempts, g.expiries,
            g.delivery_version, g.priority, g.is_awaited, g.region, g.queue, g.kind,
            g.lane_id, g.concurrency_key, g.batch_id, g.worker, g.idempotency_key,
            g.dedup_key, g.dedup, g.cancel_reason, g.last_error_code, g.last_error,
            g.last_error_details, g.keep, g.metadata, g.progress, g.payload
            -- end
        from ended as g
        where (g.ending).leaves_nothing is not true
    )
    select count(*), max(g.at), array_agg(g.ending) filter (where not g.ending is null)
    into _moved, _finished_at, _endings
    from (select e.at, e.ending from ended as e offset 0) as g;
    if _endings is not null then
        select r.gone, r.gone_attempts into _gone, _gone_attempts
        from jobq_private.follow_endings(_endings) as r;
        if cardinality(_gone) = _moved then
            perform set_config('jobq.drops', 'on', false);
        end if;
    end if;
    if jobq_private.is_held('awaiting', 0) then
        perform jobq_private.tell_ended(archive_jobs.job_ids);
    end if;
    if _moved = cardinality(archive_jobs.job_ids) then
        return null;
    end if;
    return nullif(
        array(
            select s.n
            from unnest(archive_jobs.job_ids, archive_jobs.attempts)
                with ordinality as s (job_id, attempt, n)
            where not exists (
                select from jobq_private.job_archive as a
                where a.job_id = s.job_id
                and a.attempt = s.attempt
                and a.finished_at = _finished_at
            )
            and (s.job_id, s.attempt) not in (select g.* from unnest(_gone, _gone_attempts) as g)
        ),
        '{}'
    );
end
$$;

revoke all on function jobq_private.archive_jobs from public;

comment on function jobq_private.archive_jobs is
'Moves live jobs into the archive in a final state.';
