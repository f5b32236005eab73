-- Purpose: the place of a job that starts by raw SQL; null where nothing counts what runs.
-- Invariant: as find_place(); a claim has looked, and says the place. Raises: JQ011.
create or replace function jobq_private.take_place(job jobq_private.job)
returns smallint
language plpgsql
as $$
declare
    _found record;
begin
    select f.* into _found from jobq_private.find_place(job) as f;
    if _found.barrier is not null then
        perform jobq_private.raise_error('LIMIT_REACHED', _found.barrier);
    end if;
    return _found.place;
end
$$;
