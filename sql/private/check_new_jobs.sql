-- Purpose: refuse a batch of new jobs when one of them is not acceptable.
-- Invariant: reads only, so that a refused batch leaves nothing. The depth of a payload
-- is looked at only where its text is long enough to be too deep.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
create or replace function jobq_private.check_new_jobs(jobs jobq_private.new_job[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _problem text[];
    _bytes integer;
    _depth integer;
begin
    select g.max_payload_bytes, g.max_payload_depth into _bytes, _depth
    from jobq_private.setting as g;

    select array[p.problem[1], format('job %s: %s', p.ordinal, p.problem[2])] into _problem
    from (
        select j.ordinal, case
            when j.kind is null then array['NULL_ARGUMENT', 'kind']
            when length(j.kind) not between 1 and 128
            then array['INVALID_ARGUMENT', 'kind must have 1 to 128 characters']
            when length(j.queue) not between 1 and 128
            then array['INVALID_ARGUMENT', 'queue must have 1 to 128 characters']
            when j.priority not between -32768 and 32767
            then array['INVALID_ARGUMENT', 'priority must be from -32768 to 32767']
            when j.max_attempts not between 1 and 10000
            then array['INVALID_ARGUMENT', 'max_attempts must be from 1 to 10000']
            when j.timeout not between '1 ms' and '365 days'
            then array['INVALID_ARGUMENT', 'timeout must be from 1 ms to 365 days']
            when not isfinite(j.run_at)
            then array['INVALID_ARGUMENT', 'run_at must be finite']
            when length(j.idempotency_key) not between 1 and 512
            then array['INVALID_ARGUMENT', 'idempotency_key must have 1 to 512 characters']
            when length(j.dedup_key) not between 1 and 512
            then array['INVALID_ARGUMENT', 'dedup_key must have 1 to 512 characters']
            when j.dedup not in ('skip', 'enqueue', 'replace')
            then array['INVALID_ARGUMENT', 'dedup must be skip, enqueue or replace']
            when jsonb_typeof(j.metadata) <> 'object'
            then array['INVALID_ARGUMENT', 'metadata must be a JSON object']
            when t.size > _bytes
            then array['PAYLOAD_TOO_LARGE', format('%s bytes, at most %s', t.size, _bytes)]
            when t.size > 2 * _depth
                and jsonb_path_exists(j.payload, format('$.**{%s}', _depth)::jsonpath)
            then array['PAYLOAD_TOO_DEEP', format('at most %s levels', _depth)]
            when t.size > 308 and (
                jobq_private.has_huge_number(j.payload)
                or jobq_private.has_huge_number(j.metadata)
            )
            then array['PAYLOAD_INVALID', 'a number beyond the range of a double']
        end as problem
        from unnest(check_new_jobs.jobs) as j
        cross join lateral (
            select coalesce(octet_length(j.payload::text), 0)
                + coalesce(octet_length(j.metadata::text), 0) as size
        ) as t
    ) as p
    where p.problem is not null
    limit 1;

    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], _problem[2]);
    end if;
    perform jobq_private.check_payload_schemas(check_new_jobs.jobs);
    perform jobq_private.check_queue_depth(check_new_jobs.jobs);
end
$$;

revoke all on function jobq_private.check_new_jobs(jobq_private.new_job[]) from public;

comment on function jobq_private.check_new_jobs(jobq_private.new_job[]) is
'Refuses a batch of new jobs when one of them is not acceptable.';
