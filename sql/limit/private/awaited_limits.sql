-- Purpose: the kinds for whose limits keys of a queue wait, how many jobs each allows to start
-- (null for any number), and when that changes by itself. Callers pin the planner's settings.
create or replace function jobq_private.awaited_limits(queue text, now timestamptz)
returns table (kind text, max_starts integer, opens_at timestamptz) language plpgsql stable as $$
declare
    _kind text := '';
    _scopes jobq_private.scope[];
begin
    loop
        _kind := (
            select min(w.full_kind)
            from jobq_private.waiting_key as w
            where w.queue = awaited_limits.queue and w.full_kind > _kind
        );
        exit when _kind is null;
        _scopes := _scopes || row(
            jobq_private.limit_id(null, _kind, null), null, _kind, null
        )::jobq_private.scope;
    end loop;
    if _scopes is not null then
        return query
        select r.kind, r.max_starts, r.opens_at
        from jobq_private.check_limits(_scopes, awaited_limits.now) as r;
    end if;
end
$$;
