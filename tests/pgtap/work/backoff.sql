-- What jobq_private.backoff() promises, and the presets that reproduce S0, S1 and S2.
begin;
select plan(33);

-- Seconds of many draws of a preset for one attempt.
create function pg_temp.draws(preset text, attempt integer, draws integer)
returns setof double precision
language sql
as $$
select extract(epoch from jobq_private.backoff(
    p.strategy, p.initial_delay, p.max_delay, p.jitter, draws.attempt
))
from jobq_private.retry_preset as p
cross join generate_series(1, draws.draws)
where p.retry_preset = draws.preset
$$;

-- The four strategies
select is(
    jobq_private.backoff('fixed', '2 s', '1 h', 0, 7), interval '2 s',
    'fixed waits the initial delay, whatever the attempt'
);
select is(
    jobq_private.backoff('linear', '2 s', '1 h', 0, 3), interval '6 s',
    'linear grows by the initial delay each attempt'
);
select is(
    jobq_private.backoff('exponential', '2 s', '1 h', 0, 1), interval '2 s',
    'exponential starts with the initial delay'
);
select is(
    jobq_private.backoff('exponential', '2 s', '1 h', 0, 4), interval '16 s',
    'exponential doubles with each attempt'
);
select is(
    jobq_private.backoff('exponential', '1 ms', '1 h', 0, 1), interval '1 ms',
    'a delay of a millisecond is kept'
);
select is(
    jobq_private.backoff(s.strategy, '2 s', '3 s', 0, 2147483647), s.delay,
    format('%s never passes max_delay, even at the last attempt', s.strategy)
)
from (
    values ('fixed', interval '2 s'), ('linear', '3 s'), ('exponential', '3 s')
) as s (strategy, delay);
select is(
    jobq_private.backoff('decorrelated', '5 s', '3 s', 0, 9), interval '3 s',
    'max_delay also binds a greater initial delay'
);
select is(
    jobq_private.backoff('exponential', '0 s', '1 h', 1, 5), interval '0 s',
    'no initial delay means no wait'
);
select ok(
    bool_and(jobq_private.backoff('fixed', '10 s', '10 s', 1, 1) between '0 s' and '10 s'),
    'jitter never makes a delay negative nor longer than max_delay'
)
from generate_series(1, 1000);

-- S0: uniform between 1 s and the lesser of 60 s and 3^n s
select ok(
    min(d.seconds) >= 1 and max(d.seconds) <= b.upper,
    format('S0, attempt %s: never below 1 s, never above %s s', b.attempt, b.upper)
)
from (
    select n.attempt, least(60, 3 ^ n.attempt) as upper
    from generate_series(1, 6) as n (attempt)
) as b
cross join lateral pg_temp.draws('decorrelated', b.attempt, 1000) as d (seconds)
group by b.attempt, b.upper
order by b.attempt;
select ok(
    abs(avg(d.seconds) - 30.5) < 0.05 * 59
    and min(d.seconds) < 1 + 0.05 * 59
    and max(d.seconds) > 60 - 0.05 * 59
    and abs(count(*) filter (where d.seconds < 15.75) / 2000.0 - 0.25) < 0.06,
    'S0: delays are spread evenly over their whole range'
)
from pg_temp.draws('decorrelated', 8, 2000) as d (seconds);

-- S1: 2^min(n, 10) s
select results_eq(
    $$
    select n.attempt, d.seconds
    from generate_series(1, 15) as n (attempt)
    cross join lateral pg_temp.draws('powers_of_two', n.attempt, 1) as d (seconds)
    order by n.attempt
    $$,
    $$
    select n.attempt, 2::double precision ^ least(n.attempt, 10)
    from generate_series(1, 15) as n (attempt)
    order by n.attempt
    $$,
    'S1: two to the power of the attempt, to 1024 s and no further'
);

-- S2: initial · 2^(n-1) ± 25 %, then clamped to max_delay
select ok(
    min(d.seconds) >= 0.75 * b.delay and max(d.seconds) <= least(60, 1.25 * b.delay),
    format('S2, attempt %s: within a quarter of %s s, at most 60 s', b.attempt, b.delay)
)
from (
    select n.attempt, 2 ^ (n.attempt - 1) as delay
    from generate_series(1, 7) as n (attempt)
) as b
cross join lateral pg_temp.draws('delivery', b.attempt, 500) as d (seconds)
group by b.attempt, b.delay
order by b.attempt;
select ok(
    min(d.seconds) < 0.78 * 8 and max(d.seconds) > 1.22 * 8
    and abs(avg(d.seconds) - 8) < 0.02 * 8,
    'S2: jitter uses its whole range, evenly to both sides'
)
from pg_temp.draws('delivery', 4, 2000) as d (seconds);
select is(
    min(d.seconds), 60::double precision,
    'S2: a delay far above the cap is the cap, not the cap less some jitter'
)
from pg_temp.draws('delivery', 12, 500) as d (seconds);

-- Through fail(): what a failed attempt really waits, by the database's clock
create function pg_temp.failed_waits(kind text, failures integer)
returns table (attempt integer, at_least double precision, at_most double precision)
language plpgsql
as $$
declare
    _job_id uuid := jobq.enqueue(failed_waits.kind, max_attempts => 100);
    _before timestamptz;
    _run_at timestamptz;
begin
    for _n in 1 .. failed_waits.failures loop
        update jobq_private.job as j set run_at = now() where j.job_id = _job_id;
        attempt := (select c.attempt from jobq.claim_job(_job_id, 'w') as c);
        _before := clock_timestamp();
        perform jobq.fail(_job_id, attempt, 'boom');
        _run_at := (select j.run_at from jobq_private.job as j
        where j.job_id = _job_id);
        at_least := extract(epoch from _run_at - clock_timestamp());
        at_most := extract(epoch from _run_at - _before);
        return next;
    end loop;
end
$$;
select jobq.put_kind('s0', retry_preset => 'decorrelated');
select jobq.put_kind('s1', retry_preset => 'powers_of_two');
select jobq.put_kind('s2', retry_preset => 'delivery');
select jobq.put_kind('own', retry_preset => 'delivery', retry_strategy => 'linear',
    retry_initial_delay => '7 s', retry_max_delay => '20 s', retry_jitter => 0);

select is_empty(
    $$
    select * from pg_temp.failed_waits('s0', 30) as f
    where f.at_most < 1 or f.at_least > least(60, 3 ^ f.attempt)
    $$,
    'S0 through fail(): every wait is within its bounds'
);
select is_empty(
    $$
    select * from pg_temp.failed_waits('s1', 13) as f
    where 2 ^ least(f.attempt, 10) not between f.at_least and f.at_most
    $$,
    'S1 through fail(): every wait is exact'
);
select is_empty(
    $$
    select * from pg_temp.failed_waits('s2', 30) as f
    where f.at_most < least(60, 0.75 * 2 ^ (f.attempt - 1))
    or f.at_least > least(60, 1.25 * 2 ^ (f.attempt - 1))
    $$,
    'S2 through fail(): every wait is within its bounds'
);
select is_empty(
    $$
    select * from pg_temp.failed_waits('undeclared', 12) as f
    where f.at_most < 0.75 * 2 ^ (f.attempt - 1)
    or f.at_least > 1.25 * 2 ^ (f.attempt - 1)
    $$,
    'without any declaration a wait is 1 s, doubling, with a quarter of jitter'
);
select is_empty(
    $$
    select * from pg_temp.failed_waits('own', 4) as f
    where least(20, 7 * f.attempt) not between f.at_least and f.at_most
    $$,
    'a kind''s own strategy, delays and jitter go before its preset''s'
);

select * from finish();
rollback;
