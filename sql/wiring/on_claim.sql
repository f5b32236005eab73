-- Purpose: give limits their turn in a claim, and do first what has to follow from jobs
-- that ended.
-- Invariant: replaces the core's hook of this name. null where the queue has no limits:
-- then the claim itself looks. Else jobs with keys and others take turns by priority:
-- claim_keys() starts those above the priority of the others, and half of what is
-- wanted at it. What is found without a key is counted here, and started by the claim.
-- Jobs that a changed limit or a hold moves under a key make room for those behind them,
-- up to 50 times in a claim; nothing of a lower priority starts before.
-- What waits for jobs that have ended is released before, once for each claim.
-- Raises: JQ011.
create or replace function jobq_private.on_claim(
    queue text, worker text, max_jobs integer, max_limited integer, except_kinds text[],
    is_first boolean, job jobq_private.job default null
)
returns jobq_private.claim_turn
language plpgsql
as $$
declare
    _turn jobq_private.claim_turn;
    _look jobq_private.queue_look;
    _left integer := max_jobs;
    _priority integer := 32768;
    _width integer := 1;
    _moves integer := 0;
    _batch record;
begin
    if (on_claim.job).job_id is not null then
        return jobq_private.start_job(job, max_jobs > 0);
    end if;
    if on_claim.is_first
        and exists (select from jobq_private.pending as l where l.due_at <= clock_timestamp())
    then
        perform jobq_private.resolve();
    end if;
    _look := jobq_private.enter_queue(queue, clock_timestamp());
    if not (
        coalesce(_look.is_paused or _look.is_limited, false) or _look.has_keys
        or _look.has_kind_limits
    ) then
        return null;
    end if;
    _turn := row('{}', '{}', null, 0, null);
    if _look.is_paused then
        return _turn;
    end if;

    if _look.is_limited then
        _turn.slot := 1;
        _left := least(max_jobs, max_limited, _look.max_starts);
    end if;
    while _left > 0 and _priority is not null loop
        _priority := jobq_private.due_priority(queue, _priority, except_kinds);
        if _look.has_keys and max_limited - _turn.limited is distinct from 0 then
            _turn.jobs := _turn.jobs || array(
                select c
                from jobq_private.claim_keys(
                    queue, worker, least(_left, max_limited - cardinality(_turn.jobs)), _priority,
                    _look, except_kinds => on_claim.except_kinds
                ) as c
            );
        end if;
        _left := _left - cardinality(_turn.jobs) + _turn.limited;
        _turn.limited := cardinality(_turn.jobs);
        if _priority is not null and _left > 0 then
            loop
                select p.jobs, p.moved into _batch
                from jobq_private.pass_queue(queue, jobq_private.find_jobs(
                    queue, greatest(_left, _width), on_claim.except_kinds, priority => _priority
                ), _left, _look) as p;
                _turn.found := _turn.found || _batch.jobs;
                _left := _left - cardinality(_batch.jobs);
                exit when _left = 0 or _batch.moved = 0;
                _moves := _moves + 1;
                _width := least(100, 2 * _width);
                if _moves = 50 then
                    _left := 0;  -- the next claim goes on here
                    exit;
                end if;
            end loop;
        end if;
    end loop;
    if _look.is_limited then
        _turn.limited := cardinality(_turn.jobs) + cardinality(_turn.found);
    end if;
    return _turn;
end
$$;
