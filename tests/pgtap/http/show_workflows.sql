-- What jobq_http.show_workflows() promises: what is in progress, and nothing that has ended.
begin;
select plan(7);

select is(jobq_http.show_workflows()::jsonb,
    '{"graphs": [], "batches": [], "waits": []}', 'at first nothing is in progress');
select from jobq.enqueue_graph('{"jobs": [
    {"name": "a", "kind": "k"}, {"name": "b", "kind": "k", "after": ["a"]}
]}');
select is(jobq_http.show_workflows() -> 'graphs' -> 0 ->> 'unfinished', '2', 'a graph is shown');
select jobq.complete(c.job_id, c.attempt) from jobq.claim('{default}', 'w') as c;
select is(jobq_http.show_workflows() -> 'graphs' -> 0 ->> 'unfinished', '1',
    'with how many of its jobs have not ended');
select is(jobq_http.show_workflows() -> 'graphs' -> 0 ->> 'name', 'b', 'and the first of these');
select jobq.complete(c.job_id, c.attempt) from jobq.claim('{default}', 'w') as c;
select is(jobq_http.show_workflows() ->> 'graphs', '[]', 'a graph that has ended is not shown');
select jobq.open_batch();
select is(json_array_length(jobq_http.show_workflows() -> 'batches'), 1, 'batches are shown');
select throws_ok('select jobq_http.show_workflows(0)', '22023', null, 'a page has rows');

select * from finish();
rollback;
