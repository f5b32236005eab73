-- Creates the login of the API and the workers, which is not a superuser. docker-compose.yml runs this in a new
-- database, docs/failover/ after jobq deploy. If it runs again, it changes only the password.
\getenv password APP_PASSWORD
select format('create role %I', n.name)
from unnest('{app,jobq_producer,jobq_worker,jobq_operator,jobq_reader}'::name[]) as n (name)
where not exists (select from pg_roles as r where r.rolname = n.name) \gexec
alter role app login password :'password';
grant jobq_producer, jobq_worker, jobq_operator, jobq_reader to app;
