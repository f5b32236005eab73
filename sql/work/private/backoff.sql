-- Purpose: how long to wait before the next attempt.
-- Invariant: fixed: d; linear: d·n; exponential: d·2^(n-1); each then ± jitter·delay, and at most
-- max_delay. decorrelated: uniform from d to the lesser of max_delay and d·3^n (after
-- "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). Constraints of the declarations
-- check the values.
create or replace function jobq_private.backoff(
    strategy text, initial_delay interval, max_delay interval, jitter double precision,
    attempt integer
)
returns interval language plpgsql as $$
declare
    _initial constant double precision := extract(epoch from initial_delay);
    _max constant double precision := extract(epoch from max_delay);
    _growth constant integer := least(attempt, 64);
    _seconds double precision := case strategy
        when 'fixed' then _initial
        when 'linear' then _initial * attempt
        when 'exponential' then _initial * 2::double precision ^ (_growth - 1)
        when 'decorrelated' then _initial + random() * greatest(
            0, least(_max, _initial * 3::double precision ^ _growth) - _initial
        )
    end;
begin
    _seconds := _seconds * (1 + jitter * (2 * random() - 1));
    return make_interval(secs => least(_seconds, _max));
end
$$;
