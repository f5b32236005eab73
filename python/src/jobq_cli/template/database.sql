-- The log-in of the workers and the HTTP API, which is no superuser. compose.yaml runs this when its database
-- is new.
\getenv password APP_PASSWORD
select format('create role %I', n.name)
from unnest('{app,jobq_producer,jobq_worker,jobq_operator,jobq_reader}'::name[]) as n (name)
where not exists (select from pg_roles as r where r.rolname = n.name) \gexec
alter role app login password :'password';
grant jobq_producer, jobq_worker, jobq_operator, jobq_reader to app;
