-- Purpose: check the definition of a schedule, and set its defaults.
-- Invariant: an accepted definition can fire later without another check; equivalent definitions
-- become equal. Only the payload schema of the kind can change afterwards, and applies to new
-- definitions. Raises: 22004, 22023, JQ001, JQ005, JQ006, JQ009.
create or replace function jobq_private.schedule_check(given jobq_private.schedule)
returns jobq_private.schedule language plpgsql stable set standard_conforming_strings = on as $$
declare
    _set jobq_private.schedule := given;
begin
    _set.payload := coalesce(given.payload, '{}');
    _set.metadata := coalesce(given.metadata, '{}');
    _set.from_completion := coalesce(given.from_completion, false);
    _set.time_zone := coalesce(given.time_zone, 'UTC');
    _set.gap := coalesce(given.gap, 'auto');
    _set.fold := coalesce(given.fold, 'auto');
    _set.jitter := coalesce(given.jitter, '0');
    _set.ends_at := nullif(given.ends_at, 'infinity');
    _set.missed := coalesce(
        given.missed, case when given.every is null then 'all' else 'latest' end
    );
    _set.catch_up := coalesce(
        given.catch_up, case when _set.missed = 'none' then interval '1 min' end
    );
    _set.dedup := coalesce(given.dedup, case
        when given.dedup_key is not null
        then (
            select case when s.dedup in ('debounce', 'throttle') then 'skip' else s.dedup end
            from jobq_private.settings_for(given.kind, given.queue) as s
        )
        when given.every is null then 'enqueue'
        else 'skip'
    end);
    _set.dedup_key := case
        when _set.dedup <> 'enqueue' then coalesce(given.dedup_key, given.name)
    end;
    perform jobq_private.schedule_refuse(_set);

    _set.every := make_interval(
        secs => extract(epoch from given.every)::double precision
    );
    _set.parsed := null;
    if given.cron is not null then
        _set.cron := regexp_replace(btrim(given.cron), '\s+', ' ', 'g');
        _set.parsed := jobq_private.cron_parse(
            given.cron, _set.time_zone, _set.gap, _set.fold
        );
    end if;
    perform jobq_private.check_new_jobs(array[jsonb_populate_record(
        null::jobq_private.new_job,
        to_jsonb(_set) || jsonb_build_object(
            'ordinal', 1, 'schedule_id', jobq_private.id_floor('epoch')
        )
    )]);
    if given.graph is not null then
        perform jobq_private.check_graph(given.graph, given.kind);
    end if;
    return _set;
end
$$;
