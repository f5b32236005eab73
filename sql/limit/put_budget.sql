-- Purpose: Sets or removes a budget: what the jobs of a queue or kind, of each of its
-- keys, or of one key of a queue may cost in each calendar day, week or month.
-- Invariant: one budget for each of these, the last writer wins; applies to the next
-- start. Counts jobs that start after its creation. Raises: 22004, 22023, 42501, JQ007, JQ009.
-- Argument scope_type: queue or kind.
-- Argument scope: the name of the queue or kind; a kind must be declared.
-- Argument amount: what may be spent in a period, at least 0; null for no budget.
-- Argument period: day, week (from Monday) or month.
-- Argument time_zone: in which the period begins at midnight, such as Europe/Berlin.
-- Argument concurrency_key: the key of the queue whose budget it is, instead of that of each key.
-- Argument each_key: whether the budget is that of each concurrency key.
-- Returns: nothing.
-- Example: select jobq.put_budget('queue', 'llm', 1000000, 'day', 'Europe/Berlin');
create or replace function jobq.put_budget(
    scope_type text, scope text, amount numeric default null, period text default 'month',
    time_zone text default 'UTC', concurrency_key text default null, each_key boolean default false
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _problem constant text := case
        when put_budget.scope_type not in ('queue', 'kind') then 'scope_type must be queue or kind'
        when put_budget.scope_type = 'queue'
            and (
                length(put_budget.scope) not between 1 and 128
                or right(put_budget.scope, 1) = '*'
            )
        then 'queue must have 1 to 128 characters, and must not end in *'
        when not put_budget.amount between 0 and 1000000000000000
        then 'amount must be a number from 0 to 10^15'
        when put_budget.period not in ('day', 'week', 'month')
        then 'period must be day, week or month'
        when octet_length(put_budget.concurrency_key) not between 1 and 1024
        then 'concurrency_key must have 1 to 1024 bytes'
        when put_budget.each_key and put_budget.concurrency_key is not null
        then 'a budget is that of one key or that of each, not both'
        when put_budget.concurrency_key is not null and put_budget.scope_type = 'kind'
        then 'the keys of a kind share one budget for each: give each_key'
    end;
    _budget jobq_private.budget;
begin
    perform jobq_private.check_given(
        'scope_type, scope, period, time_zone and each_key',
        num_nulls(scope_type, scope, period, time_zone, each_key)
    );
    perform jobq_private.check_argument(_problem);
    perform jobq_private.check_worked('{}', case scope_type when 'queue' then scope end);
    perform jobq_private.check_problem('INVALID_TIME_ZONE', case
        when not exists (
            select from pg_timezone_names as z where z.name = put_budget.time_zone
        )
        then put_budget.time_zone
    end);
    if put_budget.amount is not null then
        _budget := row(put_budget.amount, put_budget.period, put_budget.time_zone);
    end if;
    if put_budget.scope_type = 'kind' then
        update jobq_private.kind as k
        set
            budget = case when put_budget.each_key then k.budget else _budget end,
            key_budget = case when put_budget.each_key then _budget else k.key_budget end
        where k.kind = put_budget.scope;
        perform jobq_private.check_problem('KIND_NOT_FOUND', case
            when not found then format('kind %s', scope)
        end);
    elsif put_budget.concurrency_key is null then
        insert into jobq_private.queue as q (queue)
        values (put_budget.scope)
        on conflict on constraint queue_pkey do nothing;
        update jobq_private.queue as q
        set
            budget = case when put_budget.each_key then q.budget else _budget end,
            key_budget = case when put_budget.each_key then _budget else q.key_budget end
        where q.queue = put_budget.scope;
    else
        insert into jobq_private.key_limit as l (queue, concurrency_key, budget)
        values (put_budget.scope, put_budget.concurrency_key, _budget)
        on conflict on constraint key_limit_pkey do update
        set budget = excluded.budget, updated_at = now();
        delete from jobq_private.key_limit as l
        where l.queue = put_budget.scope and l.concurrency_key = put_budget.concurrency_key
        and num_nonnulls(l.max_running, l.rate_limit, l.budget) = 0;
    end if;
    perform jobq_private.record_audit(
        'put_budget', concat_ws(
            ' ', put_budget.scope_type, put_budget.scope, put_budget.concurrency_key,
            case when put_budget.each_key then '(each key)' end
        ),
        coalesce(
            put_budget.amount || ' per ' || put_budget.period || ', ' || put_budget.time_zone, 'none'
        )
    );
end
$$;
grant execute on function jobq.put_budget to jobq_operator;
