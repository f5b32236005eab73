-- Purpose: Saves the results of many steps, of one job or several, and returns for each
-- whether it was new.
-- Invariant: only the attempt that holds the job can save, under the lock of its row; the first
-- value is kept. outcome is 'saved', 'known' for a step with an earlier value, which is returned,
-- or 'lost' if the attempt has lost its lease. Rows are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument names: the steps' names, parallel to job_ids, 1 to 256 characters each; must
-- not begin with event:
-- Argument results: the results of the steps, a JSON array parallel to job_ids
-- Column name: the step's name
-- Column value: the saved value; null if the attempt has lost its lease
-- Column outcome: `saved`, `known` or `lost`
-- Example: select * from jobq_internal.save_steps(array[:'running']::uuid[], '{1}', '{ship}', '[true]');
create or replace function jobq_internal.save_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns table (job_id uuid, name text, value jsonb, outcome text) language plpgsql
security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set jit = off set enable_seqscan = off set enable_mergejoin = off set enable_nestloop = off as $$
#variable_conflict use_column
begin
    perform jobq_private.check_results(
        save_steps.job_ids, save_steps.attempts, save_steps.results
    );
    if num_nulls(save_steps.names, save_steps.results) > 0
        or array_position(save_steps.names, null) is not null
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'names and results');
    elsif cardinality(save_steps.names) <> cardinality(save_steps.job_ids)
        or cardinality(save_steps.names) > 1000
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'names: one for each job_id, and at most 1000'
        );
    end if;
    perform jobq_private.check_argument((
        select format(
            'name must have 1 to 256 characters, and not begin with ''event:'': ''%s''', left(s.name, 300)
        )
        from unnest(save_steps.names) as s (name)
        where length(s.name) not between 1 and 256 or s.name like 'event:%'
        limit 1
    ));
    -- Before the steps are read: another session may be about to save one for the attempt.
    perform from jobq_private.job as j
    where j.job_id = any(save_steps.job_ids) and j.lease_expires_at is not null
    order by j.job_id
    for no key update;
    -- Hash joins: nested loops would take time quadratic in the steps of a call.
    return query
    with given as materialized (
        select
            g.job_id, g.attempt, g.name, g.value, g.n, j.job_id is not null as is_held,
            row_number() over (
                partition by g.job_id, g.attempt, g.name order by g.n
            ) as place
        from rows from (
            unnest(save_steps.job_ids, save_steps.attempts, save_steps.names),
            jsonb_array_elements(save_steps.results)
        ) with ordinality as g (job_id, attempt, name, value, n)
        left join (
            select h.job_id, h.attempt
            from jobq_private.job as h
            where h.job_id = any(save_steps.job_ids) and h.lease_expires_at is not null
        ) as j on j.job_id = g.job_id and j.attempt = g.attempt
    ),
    saved as (
        insert into jobq_private.step as s (job_id, name, value, attempt)
        select g.job_id, g.name, g.value, g.attempt
        from given as g
        where g.is_held and g.place = 1
        on conflict on constraint step_pkey do nothing
        returning s.job_id, s.name, s.value
    )
    select
        g.job_id, g.name,
        case when g.is_held then coalesce(s.value, (
            select k.value
            from jobq_private.step as k
            where k.job_id = g.job_id and k.name = g.name
        )) end,
        case
            when not g.is_held then 'lost'
            when s.job_id is not null and g.place = 1 then 'saved'
            else 'known'
        end
    from given as g
    left join saved as s on s.job_id = g.job_id and s.name = g.name
    order by g.n;
end
$$;
grant execute on function jobq_internal.save_steps to jobq_worker;
