-- Purpose: forget what was declared of a kind, an endpoint's too.
-- Invariant: refused while live jobs of the kind exist, and by a trigger while schedules do. Raises: JQ007, JQ008.
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
