-- Purpose: Calls jobs and waits until all of them have ended: returns how, or that the
-- calling job was returned to its queue until then.
-- Invariant: as start_children(), then as wait_for(), for each child that has not ended. The
-- ends are saved as steps, event:job_ended:ID. The job is due when a child ends for which it
-- waits, the last one first, so that it is rarely woken while others run.
-- Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006, JQ010.
-- Argument children: as for start_children()
-- Column outcome: `arrived` or `waiting`
-- Column ends: null while it waits; else a JSON array of objects in the order of the children:
-- job_id, state (succeeded, dead, cancelled, or gone if it was deleted), result, error_code
-- and error
-- Example: select * from jobq.call_children(:'running', 1, '[{"name": "search", "kind": "send_email", "payload": {"to": "a@b.c"}}]');
create or replace function jobq.call_children(
    job_id uuid, attempt integer, children jsonb, out outcome text, out ends jsonb
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _children constant uuid[] := array(
        select s.child_id
        from jobq.start_children(
            call_children.job_id, call_children.attempt, call_children.children
        ) as s
    );
    _live uuid;
begin
    loop
        with stored as (
            insert into jobq_private.step as s (job_id, name, value, attempt)
            select
                call_children.job_id, 'event:job_ended:' || c,
                jsonb_build_object('outcome', 'arrived', 'payload', e.payload),
                call_children.attempt
            from unnest(_children) as c
            cross join lateral jobq_private.child_end(call_children.job_id, c) as e
            on conflict on constraint step_pkey do nothing
            returning s.name
        )
        delete from jobq_private.waiter as w
        using stored as s
        where w.job_id = call_children.job_id and s.name = 'event:' || w.event;
        select jsonb_agg(s.value -> 'payload' order by c.n), (array_agg(c.child_id order by c.n desc)
            filter (where s.name is null))[1]
        into ends, _live
        from unnest(_children) with ordinality as c (child_id, n)
        left join jobq_private.step as s
            on s.job_id = call_children.job_id and s.name = 'event:job_ended:' || c.child_id;
        if _live is null then
            outcome := 'arrived';
            return;
        elsif jobq_private.wait_events(
            call_children.job_id, call_children.attempt, 'job_ended:' || _live,
            array['job_ended:' || _live], null
        ) is null then
            outcome := 'waiting';
            ends := null;
            return;
        end if;
    end loop;
end
$$;

grant execute on function jobq.call_children to jobq_worker;
