-- Purpose: update what depends on redriven or changed jobs. Jobs that died of an event
-- timeout wait for the event again. The parents of blocked jobs are checked again, and
-- so are jobs that were not redriven although the edges of their children were opened.
-- Invariant: an unnecessary check costs a row of pending.
create or replace function jobq_private.follow_redriven(job_ids uuid[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _back uuid[];
    _blocked uuid[];
    _timed_out uuid[];
begin
    select
        array_agg(j.job_id),
        array_agg(j.job_id) filter (
            where j.state = 'blocked' and j.previous_state in ('dead', 'cancelled')
        ),
        array_agg(j.job_id) filter (where j.last_error_code = 'EVENT_TIMEOUT')
    into _back, _blocked, _timed_out
    from jobq_private.job as j
    where j.job_id = any(follow_redriven.job_ids);
    insert into jobq_private.pending (about, id)
    select 'parent', i.job_id
    from unnest(follow_redriven.job_ids) as i (job_id)
    where i.job_id <> all(coalesce(_back, '{}'));
    if _timed_out is not null then
        perform jobq_private.forget_timeouts(_timed_out);
    end if;
    if _blocked is not null then
        perform jobq_private.recheck_redriven(_blocked, _back);
    end if;
end
$$;
