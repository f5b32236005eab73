-- What append(), append_many(), read_stream(), list_streams() and await_stream() promise.
begin;
select plan(30);

select jobq.enqueue('work') as job_id \gset
select is(
    refusal(format('select jobq.append(%L, 0, ''a'', ''[1]'')', :'job_id')),
    'JQ003 LEASE_LOST', 'a waiting job writes nothing'
);
select from jobq.claim_job(:'job_id', 'w');
select is(
    jobq.append(:'job_id', 1, 'tokens', '["Hello", " ", "world"]'), '1-3',
    'the cursor of the last chunk is returned'
);
select is(jobq.append(:'job_id', 1, 'tokens', '["!"]'), '1-4', 'chunks are added behind the last');
select is(
    jobq.append(:'job_id', 1, 'tokens', '["!", "?"]', first => 4), '1-5',
    'with a number, a repeated chunk is not added again'
);
select is(
    (select string_agg(c ->> 'chunk', '' order by n)
    from jobq.read_stream(:'job_id', 'tokens') as r
    cross join jsonb_array_elements(r.chunks) with ordinality as e (c, n)),
    'Hello world!?', 'a reader gets each chunk once, in order'
);
select results_eq(
    format('select r.chunks -> 0 ->> ''chunk'', cursor, is_ended
        from jobq.read_stream(%L, ''tokens'', ''1-3'', max_chunks => 1) as r', :'job_id'),
    $$ values ('!', '1-4', false) $$, 'it continues from any cursor'
);
select results_eq(
    format('select * from jobq.read_stream(%L, ''tokens'', ''1-5'')', :'job_id'),
    $$ values ('[]'::jsonb, '1-5', false) $$, 'at the end, the cursor stays'
);
select results_eq(
    format('select * from jobq.read_stream(%L, ''other'')', :'job_id'),
    $$ values ('[]'::jsonb, '0-0', false) $$, 'a stream that nobody has written to is empty'
);

-- A later attempt.
select from jobq.fail(:'job_id', 1, 'x', retry_in => '0');
select is(
    refusal(format('select jobq.append(%L, 1, ''tokens'', ''[1]'')', :'job_id')),
    'JQ003 LEASE_LOST', 'an attempt that has ended writes nothing'
);
select from jobq.claim_job(:'job_id', 'w');
select is(
    jobq.append(:'job_id', 2, 'tokens', '["Hi"]'), '2-1', 'a later attempt is a new generation'
);
select results_eq(
    format('select r.chunks, r.cursor from jobq.read_stream(%L, ''tokens'', ''1-4'') as r
        where jsonb_array_length(r.chunks) = 2 and r.chunks @> ''[{"generation": 1, "chunk": "?"},
        {"generation": 2, "chunk": "Hi", "cursor": "2-1"}]''', :'job_id'),
    format('select r.chunks, ''2-1'' from jobq.read_stream(%L, ''tokens'', ''1-4'') as r', :'job_id'),
    'a reader can tell generations apart'
);
select results_eq(
    format('select stream, generation, chunks, cursor from jobq.list_streams(%L)', :'job_id'),
    $$ values ('tokens', 2, 1, '2-1') $$, 'the last generation of each stream is listed'
);

-- Many at once.
select jobq.enqueue('work') as other_id \gset
select from jobq.claim_job(:'other_id', 'w');
select results_eq(
    format('select * from jobq_internal.append_many(array[%L, %L, %L, %L]::uuid[], ''{2,2,1,9}'',
        ''{tokens,log,log,log}'', ''{2,1,1,1}'', ''["!", 1, {"a": 2}, 3]'')',
        :'job_id', :'job_id', :'other_id', :'other_id'),
    format('values (%L::uuid, 9, ''lost'')', :'other_id'), 'attempts that have lost their job are returned'
);
select results_eq(
    format('select stream, chunks from jobq.list_streams(%L)', :'job_id'),
    $$ values ('log', 1), ('tokens', 2) $$, 'the chunks are in their streams'
);
select is(
    (select chunks -> 0 -> 'chunk' from jobq.read_stream(:'other_id', 'log')), '{"a": 2}',
    'a chunk is any JSON'
);

-- The end.
select jobq.await_stream(:'job_id') as is_ended \gset
select is(:'is_ended'::text, 'f', 'a session can ask for notifications');
select from jobq.complete(:'job_id', 2);
select is(jobq.await_stream(:'job_id'), true, 'and is told that the job has ended');
select pg_advisory_unlock_all();
select results_eq(
    format('select r.chunks -> 0 ->> ''chunk'', cursor, is_ended
        from jobq.read_stream(%L, ''tokens'', ''2-1'') as r', :'job_id'),
    $$ values ('!', '2-2', true) $$, 'the stream of a finished job can be read, and has an end'
);
select is(
    (select is_ended from jobq.read_stream(:'job_id', 'tokens', max_chunks => 7)), false,
    'the end is behind the last chunk'
);
select is(
    (select is_ended from jobq.read_stream(:'job_id', 'tokens', wait => '10 s')), true,
    'a wait ends with the job'
);

-- Errors.
select is(refusal(format(c.call, :'other_id')), c.refusal, c.call)
from (
    values
    ('select jobq.append(%L, 1, null, ''[1]'')', '22004 NULL_ARGUMENT'),
    ('select jobq.append(%L, 1, ''a'', ''[]'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.append(%L, 1, '''', ''[1]'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.append(%L, 1, ''a'', jsonb_build_array(repeat(''x'', 1100000)))',
        'JQ005 PAYLOAD_TOO_LARGE'),
    ('select jobq.read_stream(%L, ''a'', ''b'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.read_stream(%L, ''a'', wait => ''1 h'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.read_stream(%L, ''a'', wait => ''178000000 years'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.read_stream(gen_random_uuid(), %L)', 'JQ001 JOB_NOT_FOUND')
) as c (call, refusal);

-- Kept as long as the job.
select from jobq.delete_many(kind => 'work', state => 'succeeded');
select is(
    (select count(*) from jobq_private.stream_chunk where job_id = :'job_id'), 0::bigint,
    'the streams of a deleted job are deleted'
);
insert into jobq_private.stream_chunk (job_id, stream, generation, n, chunk)
values ('01000000-0000-7000-8000-000000000000', 'a', 1, 1, '1');
select jobq_private.prune_workflows(1000);
select is_empty(
    'select from jobq_private.stream_chunk where job_id < ''01000000-0000-7000-8000-000000000001''',
    'so are those of a forgotten job'
);

select * from finish();
rollback;
