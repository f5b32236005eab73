-- Purpose: delete the declaration of a kind or an endpoint. Refused while it has live jobs, and
-- by a trigger while it has schedules. Raises: JQ007, JQ008.
create or replace function jobq_private.forget_kind(kind text)
returns void language plpgsql as $$
begin
    perform jobq_private.check_problem('HAS_DEPENDENTS', case
        when exists (select from jobq_private.job as j where j.kind = forget_kind.kind)
        then format('live jobs of kind %s', kind)
    end);
    delete from jobq_private.kind as d where d.kind = forget_kind.kind;
    perform jobq_private.check_problem(
        'KIND_NOT_FOUND', case when not found then format('kind %s', kind) end
    );
end
$$;
