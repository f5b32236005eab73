-- Purpose: prevent the deletion of kinds and queues that schedules and their graphs
-- use.
-- Invariant: applies to every writer. Raises: JQ008.
create or replace function jobq_private.keep_what_schedules_use()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _named constant jsonb := jsonb_build_object(tg_table_name, to_jsonb(old) -> tg_table_name);
begin
    if exists (
        select from jobq_private.schedule as s
        where (
            to_jsonb(s) @> _named
            or s.graph @> jsonb_build_object('jobs', jsonb_build_array(_named))
        )
        and s.status <> 'retired'
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'schedules of %s %s', tg_table_name, _named ->> tg_table_name
        ));
    end if;
    return old;
end
$$;

create or replace trigger kind_schedules
before delete on jobq_private.kind
for each row execute function jobq_private.keep_what_schedules_use();

create or replace trigger queue_schedules
before delete on jobq_private.queue
for each row execute function jobq_private.keep_what_schedules_use();
