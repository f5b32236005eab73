-- Purpose: refuse a new payload for a job that has run, or with another concurrency key
-- or dedup key than the job's, because limits and live jobs were compared by these.
-- Invariant: reads only. Raises: JQ002.
create or replace function jobq_private.check_payload_change(job_ids uuid[], payload jsonb)
returns void language plpgsql stable as $$
declare
    _ran text;
    _keyed text;
begin
    select
        min(j.job_id::text) filter (where j.attempt > 0 or j.state <> 'queued'),
        min(j.job_id::text) filter (
            where j.concurrency_key is not distinct from j.payload #>> k.concurrency_key
            and check_payload_change.payload #>> k.concurrency_key
            is distinct from j.concurrency_key
            or j.dedup_key = jobq_private.payload_key(j.payload, k.dedup_key)
            and jobq_private.payload_key(check_payload_change.payload, k.dedup_key)
            is distinct from j.dedup_key
        )
    into _ran, _keyed
    from jobq_private.job as j
    left join jobq_private.kind as k on k.kind = j.kind
    where j.job_id = any(check_payload_change.job_ids)
    and j.payload <> check_payload_change.payload;
    perform jobq_private.check_problem('IMMUTABLE', case
        when _ran is not null
        then format('job_id %s has already run: its payload cannot be changed', _ran)
        when _keyed is not null then format(
            'job_id %s: its concurrency key or dedup key comes from its payload, which cannot be changed', _keyed
        )
    end);
end
$$;
