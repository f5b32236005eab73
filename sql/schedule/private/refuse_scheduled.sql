-- Purpose: refuse to delete the declaration of a queue or kind while a schedule or its
-- graph uses it.
-- Invariant: the trigger's argument names the column, which schedule has too. Raises: JQ008.
create or replace function jobq_private.refuse_scheduled()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _name constant text := to_jsonb(old) ->> tg_argv[0];
begin
    perform jobq_private.check_problem('HAS_DEPENDENTS', (
        select format('schedules of %s %s', tg_argv[0], _name)
        from jobq_private.schedule as s
        where s.status <> 'retired'
        and (
            _name = case tg_argv[0] when 'queue' then s.queue else s.kind end
            or s.graph @> jsonb_build_object(
                'jobs', array[jsonb_build_object(tg_argv[0], _name)]
            )
        )
        limit 1
    ));
    return old;
end
$$;

create or replace trigger queue_scheduled
before delete on jobq_private.queue
for each row execute function jobq_private.refuse_scheduled('queue');

create or replace trigger kind_scheduled
before delete on jobq_private.kind
for each row execute function jobq_private.refuse_scheduled('kind');
