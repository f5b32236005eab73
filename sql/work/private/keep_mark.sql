-- Purpose: have the session's next claims of a queue go on where this one ended (at this job, or
-- with null where it began), when three looks at its head in a row were slow: a pinned snapshot
-- keeps their dead entries. After one, those of other sessions may go on at their front.
-- Invariant: the next look is due after twenty times what the last one took, so looks cost a
-- twentieth of the time at most, and what is more urgent or was put back waits no longer than
-- that. A mark is a hint: a wrong one, as behind a pooler,
-- costs a look. Raises: nothing.
create or replace function jobq_private.keep_mark(
    mark jobq_private.claim_mark, run_at timestamptz, job_id uuid
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
as $$
declare
    _mark jobq_private.claim_mark := mark;
begin
    if keep_mark.run_at is not null then
        _mark.run_at := keep_mark.run_at;
        _mark.job_id := keep_mark.job_id;
    end if;
    if mark.is_look then
        _mark.slow_looks :=
            case when mark.took > interval '0.2 ms' then mark.slow_looks + 1 else 0 end;
        _mark.look_at := case
            when _mark.slow_looks >= 3 and mark.priority is not null
                then clock_timestamp() + greatest(20 * mark.took, interval '10 ms')
        end;
        _mark.is_look := false;
        _mark.took := '0';
    end if;
    perform set_config(
        'jobq.mark_' || (hashtext(mark.queue) & 1023),
        case when _mark.slow_looks > 0 then _mark::text else '' end, false
    );
end
$$;

revoke all on function jobq_private.keep_mark from public;

comment on function jobq_private.keep_mark is
'Has the next claims of the session go on where this one ended.';
