-- Purpose: Creates a schedule unless its name exists, and returns it as a JSON document
-- with whether it was created.
-- Invariant: given is a JSON object with parameters of create_schedule(). A name in use by a
-- schedule of the same kind returns that schedule, whatever its definition, as an idempotency key
-- returns its job; a name in use by another kind is refused. An idempotency key is a name that no
-- other kind can take. Raises: 22004, 22023, JQ001, JQ004, JQ005, JQ006, JQ007, JQ009.
-- Never: SCHEDULE_NOT_FOUND.
-- Argument given: the definition as a JSON object; without a name, one is generated.
-- Argument idempotency_key: in place of a name.
-- Members given: create_schedule
-- Column item: the schedule as show_schedule() returns it.
-- Example: select * from jobq_http.submit_schedule('{"kind": "summary", "cron": "0 9 * * MON"}');
create or replace function jobq_http.submit_schedule(
    given jsonb, idempotency_key text default null, is_endpoint boolean default false,
    out created boolean, out item json
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    _given jobq_private.schedule := jobq_private.read_schedule(null, 'given', given);
    _schedule_id uuid;
begin
    _given.name := coalesce(
        _given.name,
        'key-' || encode(
            sha256(convert_to(_given.kind || ':' || idempotency_key, 'UTF8')), 'hex'
        ),
        'unnamed-' || jobq_private.new_id(0)
    );
    if is_endpoint then
        perform jobq_private.check_endpoints(array[_given.kind]);
    end if;

    select d.schedule_id, d.created into _schedule_id, created
    from jobq_private.schedule_declare(_given, true) as d;
    item := jobq_http.show_schedule(_schedule_id::text);
    perform jobq_private.check_problem('DEFINITION_EXISTS', case
        when item ->> 'kind' <> _given.kind
        then format('schedule %s, of kind %s', _given.name, item ->> 'kind')
    end);
end
$$;
grant execute on function jobq_http.submit_schedule to jobq_producer, jobq_operator;
