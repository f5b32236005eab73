-- Purpose: forget what was declared of a kind, an endpoint's too.
-- Invariant: refused while live jobs or schedules of the kind exist, in their graphs too. Raises: JQ007, JQ008.
create or replace function jobq_private.forget_kind(kind text)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from jobq_private.job as j where j.kind = forget_kind.kind
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'live jobs of kind %s', forget_kind.kind
        ));
    elsif exists (
        select from jobq_private.schedule as s
        where (
            s.kind = forget_kind.kind or s.graph @> jsonb_build_object(
                'jobs', array[jsonb_build_object('kind', forget_kind.kind)]
            )
        )
        and s.status <> 'retired'
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'schedules of kind %s', forget_kind.kind
        ));
    end if;
    delete from jobq_private.kind as d where d.kind = forget_kind.kind;
    if not found then
        perform jobq_private.raise_error('KIND_NOT_FOUND', format(
            'kind %s', forget_kind.kind
        ));
    end if;
end
$$;

revoke all on function jobq_private.forget_kind from public;

comment on function jobq_private.forget_kind is
'Forgets what was declared of a kind, unless live jobs or schedules of it exist.';
