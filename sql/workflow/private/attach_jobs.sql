-- Purpose: link new jobs to the jobs that they wait for, and to their batches.
-- Invariant: locks no parent, because it may run for long: adds a row to pending, so
-- that after the commit resolve() finds parents that ended meanwhile. Marks parents
-- created by this transaction as awaited. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.attach_jobs(jobs jobq_private.new_job[])
returns void language plpgsql as $$
declare
    _batches constant uuid[] := array(
        select j.batch_id from unnest(attach_jobs.jobs) as j where j.batch_id is not null
    );
    _parents constant uuid[] := array(
        select distinct a.parent
        from unnest(attach_jobs.jobs) as j
        cross join lateral unnest(j.after) as a (parent)
    );
    _new uuid[];
begin
    if _batches <> '{}' then
        perform jobq_private.join_batches(_batches);
    end if;
    perform jobq_private.check_given(
        'a job_id in after', num_nonnulls(array_position(_parents, null))
    );
    perform jobq_private.check_argument((
        select 'after must have at most 100000 jobs'
        from unnest(attach_jobs.jobs) as j where cardinality(j.after) > 100000
        limit 1
    ));

    insert into jobq_private.edge (child, parent, after_failure)
    -- store_dedup_job() gives two: that of the first one, and that of all others
    select distinct
        j.job_id, a.parent,
        split_part(coalesce(j.after_failure, 'cancel'), ',', case a.n when 1 then 1 else -1 end)
    from unnest(attach_jobs.jobs) as j
    cross join lateral unnest(j.after) with ordinality as a (parent, n);
    perform jobq_private.check_problem('JOB_NOT_FOUND', (
        select format('job_id %s', p.parent)
        from unnest(_parents, jobq_private.ends_of(_parents)) as p (parent, ended_as)
        where p.ended_as = 'gone'
        limit 1
    ));
    -- This transaction has created these, so nobody else can lock their rows.
    update jobq_private.job as j
    set is_awaited = true
    where j.job_id = any(_parents) and j.created_at = now() and not j.is_awaited;
    _new := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_parents) and j.created_at = now()
    );
    insert into jobq_private.pending (about, id)
    select 'child', j.job_id
    from unnest(attach_jobs.jobs) as j
    where exists (
        select from unnest(j.after) as a (parent)
        where a.parent not in (select n from unnest(_new) as n)
    );
end
$$;
