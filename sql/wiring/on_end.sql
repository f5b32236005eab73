-- Purpose: the hook on_end() of a full installation: slots of limits become free, and
-- those who wait for the jobs, and their batches, are noted to be looked at.
-- Invariant: see sql/job/private/on_end.sql.
create or replace function jobq_private.on_end(endings jobq_private.ending[])
returns void
language plpgsql
as $$
declare
    _limited constant jobq_private.ending[] := array(
        select e from unnest(endings) as e
        where e.state is not null and num_nonnulls(e.key_id, e.slot) > 0
    );
    _awaited constant jobq_private.ending[] := array(
        select e from unnest(endings) as e
        where e.state in ('succeeded', 'dead', 'cancelled')
        and (e.is_awaited or e.batch_id is not null)
    );
    _gone constant uuid[] := array(select e.job_id from unnest(endings) as e where e.is_gone);
begin
    if _limited <> '{}' then
        perform jobq_private.leave_keys(_limited);
    end if;
    if _awaited <> '{}' then
        perform jobq_private.add_pending(_awaited);
    end if;
    if _gone <> '{}' then
        perform jobq_private.forget_steps(_gone);
    end if;
end
$$;
