-- Purpose: delete the declaration of a kind or an endpoint. Refused while it has live jobs, and by
-- a trigger while it has schedules. Raises: JQ007, JQ008.
create or replace function jobq_private.forget_kind(kind text)
returns void
language plpgsql
as $$
begin
    if exists (
        select from jobq_private.job as j where j.kind = forget_kind.kind
    ) then
        perform jobq_private.raise_error('HAS_DEPENDENTS', format(
            'live jobs of kind %s', forget_kind.kind
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
