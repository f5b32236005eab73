-- What jobq_http.show_login() promises: who has logged in, and which scopes that is.
begin;
select plan(3);

create role console_reader login in role jobq_reader;
create role console_operator login in role jobq_operator;

set session authorization console_reader;
select is(jobq_http.show_login()::jsonb, '{"login": "console_reader", "scopes": ["read"]}',
    'a reader may read');
reset session authorization;
set session authorization console_operator;
select is(jobq_http.show_login()::jsonb -> 'scopes', '["operate", "read"]',
    'an operator has what a reader has too');
set local role jobq_reader;
select is(jobq_http.show_login()::jsonb ->> 'login', 'console_operator',
    'who has logged in counts, and no role that is set');
reset session authorization;

select * from finish();
rollback;
