-- What jobq_http.show_workers() promises: who works, and on what.
begin;
select plan(5);

select is(jobq_http.show_workers()::text, '[]', 'at first nobody works');
select jobq.enqueue('a'), jobq.enqueue('a'), jobq.enqueue('b');
select from jobq.claim('{default}', 'busy', 2);
select jobq.heartbeat('busy', '{}', '{}', '{default}');
select jobq.heartbeat('gone', '{}', '{}', '{other}');
update jobq_private.worker set seen_at = now() - interval '2 min' where worker = 'gone';

select is(jobq_http.show_workers() -> 0 ->> 'worker', 'busy', 'live ones come first');
select is((jobq_http.show_workers() -> 0 -> 'kinds')::text, '{ "a" : 2 }', 'with what they run');
select is(jobq_http.show_workers() -> 0 -> 'oldest' ->> 'kind', 'a', 'and since when');
select is(jobq_http.show_workers() -> 1 ->> 'is_live', 'false', 'the others are told too');

select * from finish();
rollback;
