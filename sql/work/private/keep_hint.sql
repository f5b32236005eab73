-- Purpose: remember for the session's next claims what this one has learned of a queue, and twice
-- a second move its watermarks.
-- Invariant: a job gets its due_at after its transaction has got its number. Take a moment, the
-- candidate: once all transactions have ended that had a number then, no job due before it can
-- appear any more. Then each watermark moves there, or to the first waiting job, locked or not,
-- because a claim may be rolled back. So claims walk each dead entry of the index a bounded
-- number of times. Callers assign what it returns: an expression costs less than PERFORM.
create or replace function jobq_private.keep_hint(hint jobq_private.claim_hint, now timestamptz)
returns jobq_private.claim_hint language plpgsql
set datestyle = 'ISO'  -- as read_hint()
as $$
declare
    _hint jobq_private.claim_hint := hint;
begin
    if keep_hint.now >= _hint.refresh_at and _hint.priorities is not null then
        if pg_snapshot_xmin(pg_current_snapshot()) >= _hint.horizon then
            _hint.watermarks := array(
                select greatest(p.watermark, least(_hint.candidate, (
                    select j.due_at
                    from jobq_private.job as j
                    where j.queue = _hint.queue
                    and j.state in ('queued', 'retrying')
                    and j.priority = p.priority
                    and j.due_at >= p.watermark
                    order by j.due_at, j.job_id
                    limit 1
                )))
                from unnest(_hint.priorities, _hint.watermarks)
                    with ordinality as p (priority, watermark, n)
                order by p.n
            );
            _hint.horizon := null;
        end if;
        if _hint.horizon is null then
            -- In this order: a later number means a later due_at.
            _hint.candidate := now();
            _hint.horizon := pg_snapshot_xmax(pg_current_snapshot());
        end if;
        -- At most a twentieth of the time goes into it.
        _hint.refresh_at := clock_timestamp()
            + greatest(interval '0.5 s', 20 * (clock_timestamp() - keep_hint.now));
    end if;
    return case when set_config(
        'jobq.hint_' || (hashtext(_hint.queue) & 1023), _hint::text, false
    ) is not null then _hint end;
end
$$;
