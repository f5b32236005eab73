-- What a claim tells of jobs for whose end something may wait.
-- Needs more than the core.
begin;
select plan(8);

create function pg_temp.told(queue text)
returns table (payload jsonb, is_awaited boolean)
language sql
as $$
    select c.payload, c.is_awaited from jobq.claim(array[told.queue], 'w', 10) as c
    order by c.payload
$$;

select jobq.enqueue('work', '1');
select results_eq(
    $$ select * from pg_temp.told('default') $$, $$ values ('1'::jsonb, false) $$,
    'for the end of a plain job nothing waits'
);
select jobq.enqueue('work', '1') as first \gset
select jobq.enqueue('work', '2', after => array[:'first'::uuid]);
select results_eq(
    $$ select * from pg_temp.told('default') $$, $$ values ('1'::jsonb, true) $$,
    'for that of another a job may'
);
select is_awaited from jobq.exchange('{default}', 'w', 10, array[:'first'::uuid], '{1}') \gset
select is(:'is_awaited'::boolean, false, 'of what follows nothing waits');
select jobq.put_queue('narrow', max_running => 3);
select jobq.enqueue('work', '1', queue => 'narrow');
select results_eq(
    $$ select * from pg_temp.told('narrow') $$, $$ values ('1'::jsonb, true) $$,
    'the place of a limited queue is waited for'
);
select jobq.put_queue('keyed', key_max_running => 1);
select jobq.enqueue('work', '1', queue => 'keyed', concurrency_key => 'k') as keyed \gset
select results_eq(
    $$ select * from pg_temp.told('keyed') $$, $$ values ('1'::jsonb, true) $$,
    'that of a limited key'
);
select jobq.enqueue('work', '1', queue => 'fair', concurrency_key => 'k');
select results_eq(
    $$ select * from pg_temp.told('fair') $$, $$ values ('1'::jsonb, false) $$,
    'a key without a limit keeps nobody out'
);
select jobq.put_kind('few', max_running => 3);
select jobq.enqueue('few', '1');
select results_eq(
    $$ select * from pg_temp.told('default') $$, $$ values ('1'::jsonb, true) $$,
    'a kind with one does'
);
select jobq.enqueue('few', '1') as named \gset
select results_eq(
    format('select c.is_awaited from jobq.claim_job(%L, ''w'') as c', :'named'), array[true],
    'and so tells the claim of a named job'
);

select * from finish();
rollback;
