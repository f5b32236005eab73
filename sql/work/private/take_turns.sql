-- Purpose: lock the jobs that a claim takes from these queues. Returns them, and those that on_queue()
-- has already started.
-- Invariant: the caller starts them in the same call, by start_jobs(), and pins the planner's
-- settings. Raises: 22004, 22023.
create or replace function jobq_private.take_turns(
    queues text[], worker text, max_jobs integer, max_limited integer, except_kinds text[],
    kinds text[]
)
returns jobq_private.claim_turn
language plpgsql
as $$
declare
    _left integer := jobq_private.check_claim(
        queues, worker, max_jobs, except_kinds, max_limited, kinds
    );
    _queue text;
    _done text[] := '{}'::text[];
    _plan jobq_private.claim_plan;
    _found tid[];
    _turn jobq_private.claim_turn;
    _all jobq_private.claim_turn;
begin
    _all := row('{}', '{}', '{}', null);
    if _left = 0 then
        return _all;
    end if;
    _plan := jobq_private.on_claim(jobq_private.match_queues(queues), except_kinds);
    foreach _queue in array _plan.queues loop
        exit when _left = 0 or '*' = any(_plan.except_kinds);
        continue when _queue = any(_done);  -- or it would lock the same jobs again
        _done := _done || _queue;
        if _queue = any(_plan.special) then
            _turn := jobq_private.on_queue(
                _queue, worker, _left, max_limited, _plan.except_kinds, kinds
            );
            if _turn.jobs <> '{}' then
                -- What was found in earlier queues comes before them.
                _all.jobs := _all.jobs || array(
                    select s from jobq_private.start_jobs(_all.found, worker, _all.slots) as s
                ) || _turn.jobs;
                _all.found := '{}';
                _all.slots := '{}';
            end if;
            _all.slots := _all.slots || array_fill(
                null::smallint, array[cardinality(_all.found) - cardinality(_all.slots)]
            ) || _turn.slots;
            _found := _turn.found;
            _left := _left - cardinality(_turn.jobs);
            max_limited := max_limited - _turn.limited;
        else
            _found := jobq_private.find_jobs(_queue, _left, _plan.except_kinds, kinds);
        end if;
        _all.found := _all.found || _found;
        _left := _left - cardinality(_found);
    end loop;
    return _all;
end
$$;
