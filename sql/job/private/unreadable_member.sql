-- Purpose: which member of which new job cannot be read as its type, and why, or null. Only for
-- batches that read_jobs() could not read: it needs a subtransaction per member.
create or replace function jobq_private.unreadable_member(jobs jsonb)
returns text
language plpgsql
stable
as $$
declare
    _ordinal bigint;
    _member text;
    _value jsonb;
begin
    for _ordinal, _member, _value in
        select e.n, m.key, m.value
        from jsonb_array_elements(unreadable_member.jobs) with ordinality as e (job, n)
        cross join lateral jsonb_each(e.job) as m
        where m.key not in ('payload', 'metadata')
        order by e.n, m.key
    loop
        begin
            perform jsonb_populate_record(
                null::jobq_private.new_job, jsonb_build_object(_member, _value)
            );
        exception
            when data_exception then
                return format('job %s: %s: %s', _ordinal, _member, sqlerrm);
        end;
    end loop;
    return null;
end
$$;
