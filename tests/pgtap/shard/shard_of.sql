-- The number of the shard stands in the ids of its jobs.
begin;
select plan(6);

select jobq.enqueue('k') as job_id \gset
select matches(
    :'job_id'::text, '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]00-[0-9a-f]{12}$',
    'an id is a UUID of version 7, with no number in a database that is no shard'
);
select is(jobq_internal.shard_of(:'job_id'), 0, 'which is shard 0');
select is(
    jobq_internal.shard_of('0198c0de-1234-7abc-9fff-0123456789ab'), 255, 'the tenth byte is the number'
);
select is(jobq_internal.shard_of(null), null, 'null for null');

select array_agg(jobq_private.new_id(0)) as ids from generate_series(1, 2000) \gset
select results_eq(
    format('select i from unnest(%L::uuid[]) as i order by i', :'ids'::text),
    format('select i from unnest(%L::uuid[]) as i', :'ids'::text),
    'ids are made in their order'
);
select is(
    (select count(distinct i) from unnest(:'ids'::uuid[]) as i), 2000::bigint,
    'and none twice'
);

select * from finish();
rollback;
