-- Purpose: Calls jobs and waits until all of them have ended: returns how, or that the
-- calling job was returned to its queue until then.
-- Invariant: as start_children(), then as wait_for(), until all children have ended. The ends
-- are saved as steps, event:job_ended:ID, before the job is due.
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
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    select c.outcome, c.ends into outcome, ends
    from jobq_internal.call_many(
        array[call_children.job_id], array[call_children.attempt],
        case when call_children.children is not null
            then jsonb_build_array(call_children.children)
        end
    ) as c;
    if outcome = 'lost' then
        perform jobq_private.refuse_attempt(call_children.job_id, call_children.attempt);
    end if;
end
$$;
grant execute on function jobq.call_children to jobq_worker;
