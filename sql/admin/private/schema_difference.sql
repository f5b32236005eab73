-- Purpose: the objects of jobq's schemas that differ from the last deployment.
-- Invariant: an object that is missing, was added, is disabled or invalid, or differs otherwise.
create or replace view jobq_private.schema_difference as
select
    format('%s %s', d.object, case
        when d.found is null then 'is missing'
        when d.deployed is null then 'was added'
        else coalesce(substring(d.definition from ' -- (is \w+)$'), 'is another')
    end) as object,
    d.object ~ '^(owner|grant|comment) ' as is_detail
from (
    select coalesce(r.object, o.object) as object, o.definition, o.sum as found,
        r.sum as deployed
    from (
        select s.object, s.definition, md5(coalesce(s.definition, '')) as sum
        from jobq_private.schema_objects() as s
    ) as o
    full join jobq_private.deployed_object as r on r.object = o.object
) as d
where d.object <> 'release' and d.found is distinct from d.deployed;
