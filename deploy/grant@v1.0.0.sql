-- Deploy jobq:grant to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: check that the author of a schedule may add its jobs and those of its graph.
-- Invariant: uses the present grants and the rules for the author's own jobs: a granted
-- queue, a kind that belongs to no other queue, and keys only with a kind of one's own.
-- Reads only. Raises: 42501.
create or replace function jobq_private.check_author(
    login text, queue text, kind text, dedup text, graph jsonb
)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    _held text[];
    _enqueued text[];
begin
    select array_agg(g.queue), array_agg(g.queue) filter (where g.privilege = 'enqueue')
    into _held, _enqueued
    from pg_catalog.pg_roles as r
    cross join lateral (
        select q.queue, q.privilege
        from jobq_private.queue_grant as q
        where pg_has_role(r.oid, q.grantee, 'usage')
        union all
        select '*', 'enqueue' where pg_has_role(r.oid, 'jobq_owner', 'usage')
    ) as g
    where r.rolname = check_author.login;

    perform jobq_private.check_problem('ENQUEUE_DENIED', (
        select format('queue %s, kind %s, log-in %s', coalesce(j.queue, 'of the kind'), j.kind, login)
        from (
            select check_author.queue, check_author.kind, o.queue, check_author.dedup <> 'enqueue'
            from (values (1)) as one (n)
            left join jobq_private.kind_queue as o on o.kind = check_author.kind
            union all
            select
                coalesce(n.node ->> 'queue', o.queue, 'default'), n.node ->> 'kind', o.queue, false
            from jsonb_array_elements(check_author.graph -> 'jobs') as n (node)
            left join jobq_private.kind_queue as o on o.kind = n.node ->> 'kind'
        ) as j (queue, kind, kind_queue, has_key)
        where not (
            coalesce(_enqueued, '{}') && array['*', j.queue]
            and case
                when j.kind_queue is not null or j.has_key
                then coalesce(_held, '{}') && array['*', j.kind_queue]
                else true
            end
        )
        limit 1
    ));
    return true;
end
$$;

-- Purpose: refuse an invalid grant by queue, and find the role.
-- Invariant: reads only. Raises: 22004, 22023.
create or replace function jobq_private.check_queue_grant(
    grantee text, queue text, privilege text
)
returns regrole
language plpgsql
stable
parallel safe
as $$
declare
    _grantee constant regrole := (
        select r.oid from pg_catalog.pg_roles as r
        where r.rolname = check_queue_grant.grantee
    );
begin
    perform jobq_private.check_given(
        'grantee, queue and privilege', num_nulls(grantee, queue, privilege)
    );
    perform jobq_private.check_argument(case
        when _grantee is null then 'grantee must be a role'
        when length(queue) not between 1 and 128 then 'queue must have 1 to 128 characters'
        when privilege not in ('enqueue', 'work') then 'privilege must be enqueue or work'
    end);
    return _grantee;
end
$$;

-- Purpose: refuse to change or delete jobs of queues without a work grant, also in a
-- dry run.
-- Invariant: reads only; reads no job while queue grants are not enforced. Raises:
-- 42501.
create or replace function jobq_private.check_worked(job_ids uuid[], queue text default null)
returns void
language plpgsql
stable
parallel safe
as $$
declare
    _worked constant text[] := jobq_private.worked_queues();
begin
    if _worked is null then
        return;
    end if;
    perform jobq_private.check_problem('QUEUE_DENIED', (
        select 'queue ' || min(q.queue)
        from (
            select check_worked.queue
            union all
            select j.queue from jobq_private.job as j where j.job_id = any(check_worked.job_ids)
            union all
            select a.queue from jobq_private.job_archive as a where a.job_id = any(check_worked.job_ids)
        ) as q
        where q.queue <> all(_worked)
    ));
end
$$;

-- Purpose: the queues that the login may use: one row, for the policies.
-- Invariant: depends on session_user, which only a superuser can change, and on the
-- roles whose privileges it has; settings and SET ROLE do not count. Logins that can
-- act as jobq_owner hold all queues, since they could grant themselves any. An array is
-- null, and so matches nothing, if the login holds none.
create or replace view jobq_private.held_queue as
select
    array_agg(g.queue) as any_of,
    array_agg(g.queue) filter (where g.privilege = 'enqueue') as enqueued,
    array_agg(g.queue) filter (where g.privilege = 'work') as worked
from (
    select q.queue, q.privilege
    from jobq_private.queue_grant as q
    where pg_has_role(session_user, q.grantee, 'usage')
    union all
    select '*', p.privilege
    from (values ('enqueue'), ('work')) as p (privilege)
    where pg_has_role(session_user, 'jobq_owner', 'usage')
) as g;

comment on view jobq_private.held_queue is 'the queues that the login may use: one row, for the policies.';

-- Purpose: raise the error that explains why the policy of new jobs refuses a job;
-- evaluated last, and never returns.
-- Invariant: a policy's own refusal has neither a code nor a helpful message. Raises:
-- 42501.
create or replace function jobq_private.refuse_job(queue text, kind text)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('ENQUEUE_DENIED', format(
        'queue %s, kind %s', refuse_job.queue, refuse_job.kind
    ));
    return false;
end
$$;

-- Purpose: raise the error that explains why the policy of steps and chunks of streams refuses
-- those of a job; evaluated last, and never returns.
-- Invariant: as refuse_job(). Raises: 42501.
create or replace function jobq_private.refuse_work(job_id uuid)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('QUEUE_DENIED', format('job_id %s', refuse_work.job_id));
    return false;
end
$$;

-- Purpose: the queues whose jobs the login may release; null for all.
-- Invariant: while queue grants are enforced, a login with some queues sees only their
-- jobs, and must not treat invisible jobs as deleted.
create or replace function jobq_private.worked_queues()
returns text[]
language sql
stable
parallel safe
as $$
    select case
        when row_security_active('jobq_private.job') and not coalesce(h.worked && '{*}', false)
        then coalesce(h.worked, '{}')
    end
    from jobq_private.held_queue as h
$$;

-- Purpose: Restricts every login to the queues granted to it; false ends this. Only for
-- jobq_owner.
-- Invariant: forces row-level security on every table that has a policy, so it also
-- applies inside jobq's functions; while it is off, the policies cost nothing. Waits
-- for open transactions, at most 5 s per table, and starts again after a deadlock with
-- one of them. Only for jobq_owner.
-- Raises: 22004, 55P03.
-- Argument enforced: false removes the restriction.
-- Example: select jobq.enforce_queue_grants();
create or replace function jobq.enforce_queue_grants(enforced boolean default true)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
    _table text;
begin
    perform jobq_private.check_given('enforced', num_nulls(enforced));
    for _attempt in 1..10 loop
        begin
            for _table in
                select distinct c.relname
                from pg_catalog.pg_policy as p
                join pg_catalog.pg_class as c on c.oid = p.polrelid
                where c.relnamespace = 'jobq_private'::regnamespace
                order by c.relname
            loop
                if enforced then
                    execute format(
                        'alter table jobq_private.%I enable row level security,'
                        ' force row level security', _table
                    );
                else
                    execute format('alter table jobq_private.%I disable row level security', _table);
                end if;
            end loop;
            exit;
        exception when deadlock_detected then
            if _attempt = 10 then
                raise;
            end if;
        end;
    end loop;
    perform jobq_private.record_audit(
        'enforce_queue_grants', case when enforced then 'on' else 'off' end
    );
end
$$;

comment on function jobq.enforce_queue_grants is 'Restricts every login to the queues granted to it; false ends this. Only for jobq_owner.';

-- Purpose: Grants a role the privilege enqueue or work for a queue, or * for all. Only
-- for jobq_owner.
-- Invariant: enqueue allows to add, see and cancel its jobs, work everything else. A
-- grant restricts queues, while EXECUTE restricts functions; a role needs both. Repeating a grant changes nothing. Raises: 22004, 22023.
-- Argument queue: the queue, or * for all queues.
-- Example: select jobq.grant_queue('jobq_producer', 'mail', 'enqueue');
create or replace function jobq.grant_queue(grantee text, queue text, privilege text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.queue_grant (grantee, queue, privilege)
    values (
        jobq_private.check_queue_grant(
            grant_queue.grantee, grant_queue.queue, grant_queue.privilege
        ),
        grant_queue.queue, grant_queue.privilege
    )
    on conflict do nothing;
end
$$;

comment on function jobq.grant_queue is 'Grants a role the privilege enqueue or work for a queue, or * for all. Only for jobq_owner.';

-- Purpose: Lists the caller's grants by queue; the owner sees all.
-- Invariant: reads only; depends on the login, like jobq.queue_grant. Raises: nothing.
-- Column queue: the queue, or * for all queues.
-- Example: select * from jobq_internal.list_queue_grants();
create or replace function jobq_internal.list_queue_grants()
returns table (grantee text, queue text, privilege text)
language sql
stable
parallel restricted
security definer
set search_path = pg_catalog, pg_temp
as $$
    select g.grantee, g.queue, g.privilege
    from jobq.queue_grant as g
    order by g.grantee, g.queue, g.privilege
$$;

grant execute on function jobq_internal.list_queue_grants
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.list_queue_grants is 'Lists the caller''s grants by queue; the owner sees all.';

-- Purpose: The caller's grants by queue; the owner sees all.
-- Invariant: reads only; depends on the login, like held_queue. Raises: nothing.
create or replace view jobq.queue_grant as
select g.grantee::text as grantee, g.queue, g.privilege
from jobq_private.queue_grant as g
where pg_has_role(session_user, g.grantee, 'usage')
or pg_has_role(session_user, 'jobq_owner', 'usage');

grant select on jobq.queue_grant
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on view jobq.queue_grant is 'The caller''s grants by queue; the owner sees all.';

-- Purpose: Revokes a grant by queue. Only for jobq_owner.
-- Invariant: applies to the next call of every session. Only for jobq_owner. Repeating
-- it changes nothing. Raises: 22004, 22023.
-- Argument grantee: the role; for a dropped role, its number in
-- jobq_internal.list_queue_grants().
-- Argument queue: the queue, or * if * was granted.
-- Example: select jobq.revoke_queue('jobq_producer', 'mail', 'enqueue');
create or replace function jobq.revoke_queue(grantee text, queue text, privilege text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _grantee regrole;
begin
    select g.grantee into _grantee
    from jobq_private.queue_grant as g
    where g.grantee::oid::text = revoke_queue.grantee
    and not exists (
        select from pg_catalog.pg_roles as r
        where r.oid = g.grantee or r.rolname = revoke_queue.grantee
    )
    limit 1;
    _grantee := coalesce(_grantee, jobq_private.check_queue_grant(
        revoke_queue.grantee, revoke_queue.queue, revoke_queue.privilege
    ));
    delete from jobq_private.queue_grant as g
    where g.grantee = _grantee
    and g.queue = revoke_queue.queue
    and g.privilege = revoke_queue.privilege;
end
$$;

comment on function jobq.revoke_queue is 'Revokes a grant by queue. Only for jobq_owner.';

-- Purpose: record changes of grants in the audit.

create or replace trigger queue_grant_audit
after insert on jobq_private.queue_grant
for each row execute function jobq_private.audit_change(
    'grant_queue', 'grantee', 'privilege', 'queue'
);

create or replace trigger queue_grant_end_audit
after delete on jobq_private.queue_grant
for each row execute function jobq_private.audit_change(
    'revoke_queue', 'grantee', 'privilege', 'queue'
);

-- Purpose: store which queue a kind belongs to, if the kind names one.
-- Invariant: policies need this for kinds that their reader may not see, and a policy
-- on kind hides those from every query; so policies read this table.
create or replace function jobq_private.copy_kind_queue()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op <> 'INSERT' then
        delete from jobq_private.kind_queue as o where o.kind = old.kind;
    end if;
    if tg_op <> 'DELETE' and new.queue is not null then
        insert into jobq_private.kind_queue (kind, queue) values (new.kind, new.queue);
    end if;
    return null;
end
$$;

create or replace trigger kind_queue
after insert or update or delete on jobq_private.kind
for each row execute function jobq_private.copy_kind_queue();

commit;
