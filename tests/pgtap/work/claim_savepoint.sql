-- What a claim within a savepoint promises: the same order as any other.
begin;
select plan(1);

select jobq.enqueue('work', '5', priority => 5);
select jobq.enqueue('work', to_jsonb(n), run_at => now() - interval '1 h' + n * interval '1 s')
from generate_series(1, 4) as n;
savepoint within;
select results_eq(
    $$ select c.payload from jobq.claim('{default}', 'w', 3) as c $$,
    $$ values ('5'::jsonb), ('1'), ('2') $$,
    'what it has locked itself, to look at all priorities, it does not pass over'
);

select * from finish();
rollback;
