-- Purpose: when the next job of these queues becomes runnable, for an idle worker's sleep.
-- Invariant: one index probe for each priority in use; paused queues do not count. A
-- moment in the past means that there is work now. Raises: 22004.
-- Returns: the instant; one in the past when there is work now, null when none waits.
-- Example: select jobq.next_due('{default}');
create or replace function jobq.next_due(queues text[])
returns timestamptz
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _queue text;
    _priority integer;
    _run_at timestamptz;
    _next timestamptz;
begin
    if next_due.queues is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'queues');
    end if;
    foreach _queue in array next_due.queues loop
        _priority := 32768;
        loop
            select j.priority, j.run_at into _priority, _run_at
            from jobq_private.job as j
            where j.queue = _queue
            and j.state in ('queued', 'retrying')
            and j.priority < _priority
            order by j.priority desc, j.run_at
            limit 1;
            exit when not found or jobq_private.is_paused(_queue);
            _next := least(_next, _run_at);
        end loop;
    end loop;
    return _next;
end
$$;

revoke all on function jobq.next_due from public;
grant execute on function jobq.next_due to jobq_worker, jobq_reader;

comment on function jobq.next_due is
'Returns when the next job of these queues becomes runnable, or null when none waits.';
