-- What jobq.listen_events() promises to one session; what others commit meanwhile is in
-- tests/python/test_events.py. Who may call it is in security.sql.
begin;
select plan(16);

create function pg_temp.refusal(arguments text)
returns text
language plpgsql
as $$
declare
    _code text;
begin
    execute format('select from jobq.listen_events(%s)', arguments);
    return 'none';
exception
    when others then
        get stacked diagnostics _code = constraint_name;
        return sqlstate || ' ' || _code;
end
$$;

create function pg_temp.place(at timestamptz)
returns text
language sql
as $$
select (extract(epoch from at) * 1000000)::bigint || '_00000000-0000-0000-0000-000000000000'
$$;

select is(
    pg_temp.refusal(r.arguments), r.refusal, format('listen_events(%s): %s', r.arguments, r.refusal)
)
from (
    values ('max_events => null', '22004 NULL_ARGUMENT'),
    ('queues => ''{a,null}''', '22004 NULL_ARGUMENT'),
    ('kinds => ''{null}''', '22004 NULL_ARGUMENT'),
    ('max_events => 0', '22023 INVALID_ARGUMENT'),
    ('max_events => 1001', '22023 INVALID_ARGUMENT'),
    ('queues => ''{}''', '22023 INVALID_ARGUMENT'),
    ('since => ''infinity''', '22023 INVALID_ARGUMENT'),
    ('since => now() + interval ''1 h''', '22023 INVALID_ARGUMENT'),
    ('''nonsense''', '22023 INVALID_ARGUMENT'),
    ('pg_temp.place(now() + interval ''1 h'')', '22023 INVALID_ARGUMENT'),
    ('pg_temp.place(now()), since => now()', '22023 INVALID_ARGUMENT')
) as r (arguments, refusal);

select results_eq(
    'select events, is_behind, is_settled from jobq.listen_events(since => ''2000-01-01'')',
    'values (''[]''::jsonb, false, true)',
    'where nothing has ended there is no event'
);
select cursor as place from jobq.listen_events() \gset
select ok(:'place' > pg_temp.place(now()), 'it begins at present');

select jobq.cancel(jobq.enqueue('work'));
select results_eq(
    format('select events, cursor, is_settled from jobq.listen_events(%L)', :'place'),
    format('values (''[]''::jsonb, %L, false)', :'place'),
    'who has ended a job is not told of it before the commit, and the cursor stays'
);
select is(
    (select count(*)::integer from pg_locks as l where l.pid = pg_backend_pid()
        and l.locktype = 'advisory' and l.classid = 1785684596),
    0, 'looking announces nothing'
);
select ok(
    not has_function_privilege(
        'jobq_producer', 'jobq_private.settled_at(interval)', 'execute'
    ),
    'what is private is nobody''s to call'
);

select * from finish();
rollback;
