-- What jobq_private.note_rules() promises.
begin;
select plan(27);

create function pg_temp.rules()
returns text
language plpgsql
as $$
begin
    return format('%s %s', jobq_private.has_kind_rules(), jobq_private.has_queue_rules());
end
$$;

select jobq.enqueue('before', '{}');
select jobq.put_kind('bare', dedup => 'skip', retry_preset => 'delivery', run => null);
select jobq.put_queue('bare', max_running => 3, retry_preset => 'delivery');
select is(pg_temp.rules(), 'f f', 'what says nothing that enqueue() goes by is not looked for');

-- Each column by itself, by raw SQL
create temporary table rule (relation text, setting text, value text);
insert into rule values
('kind', 'queue', '''q'''), ('kind', 'priority', '3'), ('kind', 'max_attempts', '3'),
('kind', 'timeout', '''3 s'''), ('kind', 'lease', '''3 s'''),
('kind', 'concurrency_key', '''{a}'''), ('kind', 'max_running', '3'),
('kind', 'rate_limit', '3'), ('kind', 'keep', '''{1 day,1 day,1 day}'''),
('kind', 'payload_schema', '''{}'''), ('kind', 'json_schema', '''{}'''),
('kind', 'delivery_version', '1'), ('queue', 'priority', '3'), ('queue', 'max_attempts', '3'),
('queue', 'timeout', '''3 s'''), ('queue', 'lease', '''3 s'''), ('queue', 'max_depth', '3');

create function pg_temp.rules_after(relation text, setting text, value text)
returns text
language plpgsql
as $$
declare
    _rules text;
begin
    execute format(
        'update jobq_private.%I set %I = %s where %1$I = ''bare''', relation, setting, value
    );
    _rules := pg_temp.rules();
    raise exception using errcode = 'P0002', message = _rules;
exception
    when no_data_found then
        return _rules;
end
$$;

select is(
    pg_temp.rules_after(r.relation, r.setting, r.value),
    case r.relation when 'kind' then 't f' else 'f t' end,
    format('a %s that says its %s is looked for', r.relation, r.setting)
)
from rule as r;
select is(pg_temp.rules(), 'f f', 'and not once that is rolled back');

select set_eq(
    $$
    select m.found[1] as relation, m.found[2] as setting
    from pg_proc as p
    cross join lateral regexp_matches(p.prosrc, '_of_(kind|queue)\.(\w+)', 'g') as m (found)
    where p.oid = 'jobq.enqueue'::regproc
    $$,
    'select relation, setting from rule',
    'those are all that enqueue() reads'
);

-- In the same transaction
select jobq.put_kind('ruled', queue => 'elsewhere', timeout => '7 s');
select jobq.enqueue('ruled') as ruled \gset
select is(
    (select j.queue || ' ' || j.timeout from jobq_private.job as j where j.job_id = :'ruled'),
    'elsewhere 00:00:07', 'the next job goes by what its kind says'
);
select jobq.put_kind('keyed', concurrency_key => '{to}');
select throws_ok(
    $$ select jobq.enqueue('keyed', '{"to": {}}', idempotency_key => 'k') $$,
    'JQ006', null, 'and one with a key is checked by what it says'
);
select jobq.put_queue('elsewhere', priority => 4);
select jobq.enqueue('ruled') as ruled \gset
select is(
    (select j.priority::integer from jobq_private.job as j where j.job_id = :'ruled'),
    4, 'and by what its queue says'
);
delete from jobq_private.kind where kind = 'ruled';
select is(pg_temp.rules(), 't t', 'who has looked for rules goes on looking');
select jobq.enqueue('ruled') as ruled \gset
select is(
    (select j.queue from jobq_private.job as j where j.job_id = :'ruled'),
    'default', 'and finds none where they have gone'
);

-- Deployed anew, beside rows that are there
select jobq.put_kind('ruled', timeout => '7 s');
drop function jobq_private.has_kind_rules(), jobq_private.has_queue_rules();
select jobq_private.write_constants();
select is(pg_temp.rules(), 't t', 'rules that are there are seen by what is created later');
delete from jobq_private.kind;
delete from jobq_private.queue;
drop function jobq_private.has_kind_rules(), jobq_private.has_queue_rules();
select jobq_private.write_constants();
select is(pg_temp.rules(), 'f f', 'and none where there are none');

select * from finish();
rollback;
