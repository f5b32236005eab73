-- Purpose: finish what a batch that passes over held jobs has left, at these positions, but is
-- not held after all: by a savepoint of this transaction, or by several that only look.
-- Invariant: what moves here is locked before, so nothing waits.
-- Returns the positions of those that did not move. Raises: nothing of its own.
create or replace function jobq_private.settle_rest(
    job_ids uuid[], attempts integer[], results jsonb, positions bigint[]
)
returns bigint[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _held constant uuid[] := jobq_private.held_jobs(
        array(select job_ids[n] from unnest(positions) as n),
        array(select attempts[n] from unnest(positions) as n)
    );
    _late constant bigint[] := array(
        select n
        from unnest(positions) as n
        join jobq_private.job as j
            on j.job_id = job_ids[n]
            and j.attempt = attempts[n]
            and j.lease_expires_at is not null
        where j.job_id <> all(_held)
    );
begin
    if _late <> '{}' then
        perform jobq_private.archive_jobs(
            array(select job_ids[n] from unnest(_late) as n),
            array(select attempts[n] from unnest(_late) as n),
            'succeeded',
            (select jsonb_agg(results -> (n - 1)::integer) from unnest(_late) as n),
            false
        );
    end if;
    return array(select n from unnest(positions) as n where n <> all(_late));
end
$$;

revoke all on function jobq_private.settle_rest from public;

comment on function jobq_private.settle_rest is
'Finishes what a batch has left but nobody holds, and returns the positions of the rest.';
