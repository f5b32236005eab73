-- Purpose: those of these jobs whose called jobs have all ended, with the ends saved as steps.
-- Invariant: the caller has locked the jobs, and looks for live children with a later snapshot. So
-- of two children that end together, the later transaction finds both.
create or replace function jobq_private.settle_calls(job_ids uuid[])
returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_hashjoin = on
as $$
declare
    _settled uuid[];
    _callers uuid[];
    _children uuid[];
begin
    -- From the last one: children mostly end in order, so a live one is found soon.
    with settled as materialized (
        select i.job_id
        from unnest(settle_calls.job_ids) as i (job_id)
        where (
            select true
            from jobq_private.waiter as w
            where w.job_id = i.job_id and w.needs_all and (
                select true
                from jobq_private.job as c
                where c.job_id = substr(w.event, 11)::uuid
            )
            order by w.event desc
            limit 1
        ) is null
    ),
    removed as (
        delete from jobq_private.waiter as w
        where w.job_id = any(array(select s.job_id from settled as s)) and w.needs_all
        returning w.job_id, substr(w.event, 11)::uuid as child_id
    )
    select
        (select array_agg(s.job_id) from settled as s),
        array_agg(r.job_id), array_agg(r.child_id)
    into _settled, _callers, _children
    from removed as r;
    if _settled is null then
        return '{}'::uuid[];
    end if;
    insert into jobq_private.step (job_id, name, value, attempt)
    select
        s.job_id, 'event:job_ended:' || s.child_id,
        jsonb_build_object('outcome', 'arrived', 'payload', e.payload),
        (select j.attempt from jobq_private.job as j where j.job_id = s.job_id)
    from unnest(_callers, _children) as s (job_id, child_id)
    join jobq_private.child_ends(_children) as e on e.child_id = s.child_id
    on conflict on constraint step_pkey do nothing;
    return _settled;
end
$$;
