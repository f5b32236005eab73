-- Purpose: lock blocked jobs that will also wait for new ones.
-- Invariant: in the order of ids; resolve() skips them until the commit, and then sees
-- the new parents. Raises: JQ002.
create or replace function jobq_private.hold_children(job_ids uuid[])
returns void
language plpgsql
as $$
declare
    _free uuid;
begin
    if job_ids = '{}' then
        return;
    end if;
    perform from jobq_private.job as j
    where j.job_id = any(hold_children.job_ids)
    order by j.job_id
    for no key update;
    select c.job_id into _free
    from unnest(hold_children.job_ids) as c (job_id)
    where not exists (
        select from jobq_private.job as j where j.job_id = c.job_id and j.state = 'blocked'
    )
    or exists (
        select from jobq_private.batch as b
        where c.job_id in (b.on_success, b.on_end, b.on_first_death)
    )
    limit 1;
    if found then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s; only a blocked job that no batch starts can wait for more jobs',
            _free,
            jobq_private.state_of(_free)
        ));
    end if;
end
$$;
