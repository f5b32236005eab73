-- Purpose: the limits of kinds for which keys of a queue wait, how many jobs each
-- allows to start (null for any number), and when that changes by itself. Callers pin
-- the planner's settings.
create or replace function jobq_private.awaited_limits(queue text, now timestamptz)
returns table (limit_id uuid, max_starts integer, opens_at timestamptz)
language plpgsql
stable
as $$
#variable_conflict use_column
declare
    _limit_id uuid;
    _scopes jobq_private.scope[];
begin
    loop
        _limit_id := (
            select w.limit_id
            from jobq_private.waiting_key as w
            where w.queue = awaited_limits.queue
            and w.limit_id > coalesce(_limit_id, '00000000-0000-0000-0000-000000000000')
            order by w.limit_id
            limit 1
        );
        exit when _limit_id is null;
        _scopes := _scopes || row(_limit_id, null, (
            select g.kind from jobq_private.limit_state as g where g.limit_id = _limit_id
        ), null)::jobq_private.scope;
    end loop;
    if _scopes is null then
        return;
    end if;
    return query
    select r.limit_id, r.max_starts, r.opens_at
    from jobq_private.check_limits(_scopes, awaited_limits.now) as r;
end
$$;
