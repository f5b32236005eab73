-- Purpose: where a routed function runs if on one partition: an expression for the
-- router's function; null for classes that choose it otherwise.
create or replace function jobq_private.router_place(called jobq_private.routed_function)
returns text language sql stable as $$
    select case called.class
        when 'key' then 'jobq_router.partition_of_new('
            'kind, concurrency_key, idempotency_key, dedup_key, after, batch_id)'
        when 'lot' then format(
            'coalesce(jobq_router.partition_of_id(%s), jobq_router.random_partition())',
            coalesce(nullif(called.detail, ''), 'null')
        )
        when 'id' then format(
            'coalesce(jobq_router.partition_of_id(%I), jobq_router.random_partition())', called.detail
        )
        when 'schedule' then format('jobq_router.partition_of_schedule(%I::text)', called.detail)
        when 'any' then 'jobq_router.responding_partition()'
    end
$$;
