-- Purpose: record the objects of jobq's schemas and their release.
create or replace function jobq_private.record_release(release text)
returns void language sql set search_path = pg_catalog, pg_temp as $$
    delete from jobq_private.deployed_object;
    insert into jobq_private.deployed_object (object, sum)
    select o.object, md5(coalesce(o.definition, '')) from jobq_private.schema_objects() as o
    union all
    select 'release', record_release.release
$$;
