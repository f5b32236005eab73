-- Purpose: refuse invalid steps.
-- Invariant: the arrays are parallel and name at most 1,000 steps; names that
-- wait_for() uses are reserved. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns void
language plpgsql
stable
parallel safe
as $$
declare
    _name text;
begin
    perform jobq_private.check_results(
        check_steps.job_ids, check_steps.attempts, check_steps.results
    );
    if num_nulls(check_steps.names, check_steps.results) > 0
        or exists (select from unnest(check_steps.names) as s (name) where s.name is null)
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'names and results');
    elsif cardinality(check_steps.names) <> cardinality(check_steps.job_ids)
        or cardinality(check_steps.names) > 1000
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'names: one for each job_id, and at most 1000'
        );
    end if;
    select s.name into _name
    from unnest(check_steps.names) as s (name)
    where length(s.name) not between 1 and 256 or s.name like 'event:%'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'name must have 1 to 256 characters, and not begin with ''event:'': ''%s''', left(_name, 300)
        ));
    end if;
end
$$;
