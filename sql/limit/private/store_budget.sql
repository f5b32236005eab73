-- Purpose: store what put_budget() has checked; null takes a budget away.
-- Invariant: a job that did not fit is asked for again: the change may have made room.
-- Raises: JQ007.
create or replace function jobq_private.store_budget(
    scope_type text, scope text, concurrency_key text, each_key boolean,
    budget jobq_private.budget
)
returns void
language plpgsql
as $$
begin
    if store_budget.scope_type = 'kind' then
        update jobq_private.kind as k
        set
            budget = case when each_key then k.budget else store_budget.budget end,
            key_budget = case when each_key then store_budget.budget else k.key_budget end
        where k.kind = store_budget.scope;
        if not found then
            perform jobq_private.raise_error('KIND_NOT_FOUND', format('kind %s', scope));
        end if;
    elsif store_budget.concurrency_key is null then
        insert into jobq_private.queue as q (queue)
        values (store_budget.scope)
        on conflict on constraint queue_pkey do nothing;
        update jobq_private.queue as q
        set
            budget = case when each_key then q.budget else store_budget.budget end,
            key_budget = case when each_key then store_budget.budget else q.key_budget end
        where q.queue = store_budget.scope;
    elsif store_budget.budget is null then
        delete from jobq_private.key_limit as l
        where l.queue = store_budget.scope and l.concurrency_key = store_budget.concurrency_key
        and num_nonnulls(l.max_running, l.rate_limit) = 0;
        update jobq_private.key_limit as l
        set budget = null, updated_at = now()
        where l.queue = store_budget.scope and l.concurrency_key = store_budget.concurrency_key;
    else
        insert into jobq_private.key_limit as l (queue, concurrency_key, budget)
        values (store_budget.scope, store_budget.concurrency_key, store_budget.budget)
        on conflict on constraint key_limit_pkey do update
        set budget = excluded.budget, updated_at = now();
    end if;
    -- Waits for no claim: what one keeps from this, maintain() does within a minute.
    update jobq_private.limit_state as g
    set full_until = null
    where g.limit_id = any(array(
        select o.limit_id
        from jobq_private.limit_state as o
        where o.limit_id = jobq_private.limit_id(
            case store_budget.scope_type when 'queue' then store_budget.scope end,
            case store_budget.scope_type when 'kind' then store_budget.scope end, null
        )
        and o.full_until is not null
        for update skip locked
    ));
end
$$;
