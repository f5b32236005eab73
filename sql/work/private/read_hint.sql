-- Purpose: what this session remembers of a queue, completed by priorities that have come into
-- use.
-- Invariant: forgets all after a minute, and if the clock was put back to before it was noted, so
-- that nothing stays unseen for longer. Probes only between the known priorities, where no dead
-- entries are; a new hint knows none, so its first claim reads the queue from the head.
-- Priorities are null from the 17th on.
create or replace function jobq_private.read_hint(queue text, now timestamptz)
returns jobq_private.claim_hint language plpgsql stable
-- So that times are read as they were written, whatever the session sets.
set datestyle = 'ISO' as $$
declare
    _hint jobq_private.claim_hint := nullif(
        current_setting('jobq.hint_' || (hashtext(read_hint.queue) & 1023), true), ''
    )::jobq_private.claim_hint;
    _new integer[];
begin
    if _hint.queue is distinct from read_hint.queue
        or read_hint.now not between _hint.expires_at - interval '1 min' and _hint.expires_at
    then
        _hint := null;
        _hint.queue := read_hint.queue;
        _hint.expires_at := read_hint.now + interval '1 min';
        _hint.refresh_at := read_hint.now;
        _hint.priorities := '{}';
        _hint.watermarks := '{}';
    end if;
    while _hint.priorities is not null loop
        _new := array(
            select n.priority
            from unnest(32768 || _hint.priorities, _hint.priorities || -32769)
                as g (above, below)
            cross join lateral (
                select j.priority
                from jobq_private.job as j
                where j.queue = read_hint.queue
                and j.state in ('queued', 'retrying')
                and j.due_at is not null
                and j.priority < g.above
                and j.priority > g.below
                order by j.priority desc, j.due_at, j.job_id
                limit 1
            ) as n
        );
        exit when _new = '{}';
        select array_agg(p.priority order by p.priority desc),
            array_agg(p.watermark order by p.priority desc)
        into _hint.priorities, _hint.watermarks
        from (
            select k.priority, k.watermark
            from unnest(_hint.priorities, _hint.watermarks) as k (priority, watermark)
            union all
            select n.priority, '-infinity' from unnest(_new) as n (priority)
        ) as p
        having count(*) <= 16;
    end loop;
    return _hint;
end
$$;
