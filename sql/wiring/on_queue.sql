-- Purpose: give limits their turn in a claim.
-- Invariant: replaces the core's hook of this name. Jobs with keys and others take turns by
-- priority: claim_keys() starts those above the priority of the others, and half of what is
-- wanted at it. What is found without a key is started by the claim, or here if the queue is
-- limited. Nothing of a lower priority starts before.
create or replace function jobq_private.on_queue(
    queue text, worker text, max_jobs integer, max_limited integer, except_kinds text[],
    kinds text[]
)
returns jobq_private.claim_turn language plpgsql as $$
declare
    _turn jobq_private.claim_turn;
    _look jobq_private.queue_look;
    _left integer := max_jobs;
    _priority integer := 32768;
    _found tid[];
    _started jobq.claimed_job[];
    _moves_left integer := 50;
begin
    _look := jobq_private.enter_queue(queue, clock_timestamp());
    _turn := row('{}', '{}', null, 0);
    if _look.is_paused then
        return _turn;
    elsif _look.is_limited then
        _left := least(max_jobs, max_limited, _look.max_starts);
    end if;
    while _left > 0 and _priority is not null loop
        _priority := jobq_private.due_priority(queue, _priority, except_kinds, kinds);
        if _look.has_keys and max_limited - _turn.limited is distinct from 0 then
            _turn.jobs := _turn.jobs || jobq_private.claim_keys(
                queue, worker, least(_left, max_limited - cardinality(_turn.jobs)), _priority,
                _look, on_queue.kinds, on_queue.except_kinds
            );
        end if;
        _left := _left - cardinality(_turn.jobs) + _turn.limited;
        _turn.limited := cardinality(_turn.jobs);
        if _priority is not null and _left > 0 then
            select f.jobs, f.moves_left into _found, _moves_left
            from jobq_private.find_passing(
                queue, _left, except_kinds, kinds, _priority, _look, _moves_left
            ) as f;
            if _look.is_limited and _found <> '{}' then
                -- what expires or is postponed instead of started costs nothing
                _started := array(
                    select s from jobq_private.start_jobs(
                        _found, worker, array_fill(1::smallint, array[cardinality(_found)])
                    ) as s
                );
                perform jobq_private.charge(array(select s.job_id from unnest(_started) as s), true);
                _turn.jobs := _turn.jobs || _started;
                _turn.limited := cardinality(_turn.jobs);
                _priority := _priority + 1;
            else
                _turn.found := _turn.found || _found;
            end if;
            _left := case when _moves_left > 0 then _left - cardinality(_found) else 0 end;
        end if;
    end loop;
    return _turn;
end
$$;
