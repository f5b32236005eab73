-- Deploy jobq:schemas to pg
begin;

create schema jobq authorization jobq_owner;
create schema jobq_http authorization jobq_owner;
create schema jobq_private authorization jobq_owner;

set local role jobq_owner;

comment on schema jobq is 'The public interface of jobq: functions and views.';
comment on schema jobq_http is 'What only the HTTP server and its console call: documents, pages, API keys.';
comment on schema jobq_private is 'Tables and helpers of jobq; only jobq_owner touches them.';

grant usage on schema jobq, jobq_http
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

alter default privileges in schema jobq revoke execute on functions from public;
alter default privileges in schema jobq_http revoke execute on functions from public;
alter default privileges in schema jobq_private revoke execute on functions from public;
alter default privileges for role jobq_owner revoke execute on functions from public;

commit;
