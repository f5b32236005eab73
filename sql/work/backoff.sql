-- Purpose: return how long to wait before the next attempt.
-- Invariant: fixed: d; linear: d·n; exponential: d·2^(n-1); each then ± jitter·delay, and at most
-- max_delay. decorrelated: uniform from d to the lesser of max_delay and d·3^n (after "Exponential
-- Backoff And Jitter", AWS Architecture Blog, 2015). Raises: 22004, 22023.
-- Argument strategy: fixed, linear, exponential or decorrelated.
-- Argument initial_delay: the delay before the second attempt; up to a year.
-- Argument max_delay: no delay is longer than this; up to a year.
-- Argument jitter: random share of the delay, 0 to 1, before max_delay applies.
-- Argument attempt: the attempt that failed, from 1.
-- Returns: the delay.
-- Example: select jobq.backoff('exponential', '1 s', '1 h', 0.25, 3);
create or replace function jobq.backoff(
    strategy text,
    initial_delay interval,
    max_delay interval,
    jitter double precision,
    attempt integer
)
returns interval
language plpgsql
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _initial double precision := extract(epoch from initial_delay);
    _max double precision := extract(epoch from max_delay);
    _growth integer := least(attempt, 64);
    _seconds double precision;
begin
    if num_nulls(strategy, initial_delay, max_delay, jitter, attempt) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'every argument of backoff');
    elsif attempt < 1 or not coalesce(jitter between 0 and 1, false)
        or _initial not between 0 and 31536000 or _max not between 0 and 31536000
    then
        perform jobq_private.raise_error('INVALID_ARGUMENT',
            'attempt must be at least 1, jitter from 0 to 1, delays from 0 to 365 days');
    end if;
    case strategy
        when 'fixed' then _seconds := _initial;
        when 'linear' then _seconds := _initial * attempt;
        when 'exponential' then _seconds := _initial * 2::double precision ^ (_growth - 1);
        when 'decorrelated' then
            _seconds := least(_max, _initial * 3::double precision ^ _growth);
            _seconds := _initial + random() * greatest(0, _seconds - _initial);
        else
            perform jobq_private.raise_error('INVALID_ARGUMENT',
                'strategy must be fixed, linear, exponential or decorrelated');
    end case;
    _seconds := _seconds * (1 + jitter * (2 * random() - 1));
    return make_interval(secs => least(_seconds, _max));
end
$$;

grant execute on function jobq.backoff
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.backoff is
'Returns the delay before the next attempt.';
