-- Deploy jobq:schemas to pg
-- Roles belong to the whole cluster, so creating them tolerates that another
-- database has created them before.
begin;

-- Payloads and results may hold any text, and one that cannot be stored would be a worker's to lose.
do $$
begin
    if getdatabaseencoding() <> 'UTF8' then
        raise exception using
            errcode = 'feature_not_supported',
            message = 'jobq needs a database whose encoding is UTF8',
            detail = format('the encoding of %s is %s', current_database(), getdatabaseencoding()),
            hint = 'create one with: create database NAME encoding ''UTF8'' template template0';
    end if;
end
$$;

do $$
declare
    _role text;
begin
    foreach _role in array array[
        'jobq_owner', 'jobq_producer', 'jobq_worker', 'jobq_operator', 'jobq_reader'
    ] loop
        if not exists (select from pg_catalog.pg_roles as r where r.rolname = _role) then
            execute format('create role %I nologin', _role);
        end if;
    end loop;
end
$$;

-- Whoever has deployed may do everything, though not a superuser: on PostgreSQL 16 and later, who has
-- created a role is not yet a member.
grant jobq_owner, jobq_producer, jobq_worker, jobq_operator, jobq_reader to current_user;

-- jobq.health() names the session that holds back vacuum where this grant is to be had.
do $$
begin
    grant pg_read_all_stats to jobq_owner;
exception
    when insufficient_privilege then
        raise notice 'jobq.health() will not see other sessions: grant pg_read_all_stats to jobq_owner';
end
$$;

grant jobq_reader to jobq_operator;

comment on role jobq_owner is 'Owns every jobq object; nobody logs in as it.';
comment on role jobq_producer is 'May enqueue jobs.';
comment on role jobq_worker is 'May claim jobs and settle them.';
comment on role jobq_operator is 'May cancel, redrive, pause and configure.';
comment on role jobq_reader is 'May look at jobs and statistics.';

create schema if not exists jobq authorization jobq_owner;
create schema if not exists jobq_http authorization jobq_owner;
create schema if not exists jobq_internal authorization jobq_owner;
create schema if not exists jobq_private authorization jobq_owner;

set local role jobq_owner;

comment on schema jobq is 'The public interface of jobq: functions and views.';
comment on schema jobq_http is 'What only the HTTP server and its console call: documents, pages, API keys.';
comment on schema jobq_internal is 'What only jobq''s own programs call: the worker, lists of the client library, shards, the test kit. It may change in any release.';
comment on schema jobq_private is 'Tables and helpers of jobq; only jobq_owner touches them.';

grant usage on schema jobq, jobq_http, jobq_internal
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

alter default privileges in schema jobq revoke execute on functions from public;
alter default privileges in schema jobq_http revoke execute on functions from public;
alter default privileges in schema jobq_internal revoke execute on functions from public;
alter default privileges in schema jobq_private revoke execute on functions from public;
alter default privileges for role jobq_owner revoke execute on functions from public;

commit;
