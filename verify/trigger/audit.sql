-- Verify jobq:trigger/audit on pg
begin;

select 1 / (
    count(*) >= 1
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = 'jobq_private'::regnamespace
and p.proname = 'audit_change';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.api_key'::regclass
and t.tgname = 'api_key_audit';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.api_key'::regclass
and t.tgname = 'api_key_birth_audit';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.job_archive'::regclass
and t.tgname = 'archive_audit';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.queue'::regclass
and t.tgname = 'queue_audit';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.queue'::regclass
and t.tgname = 'queue_birth_audit';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.queue_grant'::regclass
and t.tgname = 'queue_grant_audit';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.queue_grant'::regclass
and t.tgname = 'queue_grant_end_audit';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.secret'::regclass
and t.tgname = 'secret_audit';

select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = 'jobq_private.secret'::regclass
and t.tgname = 'secret_end_audit';

rollback;
