-- Deploy jobq:grant to pg
-- Made by sql/snapshot.py from sql/grant/: edit that.
begin;
set local role jobq_owner;

-- Purpose: whether who has declared a schedule may add its jobs, those of its graph too.
-- Invariant: decided by the grants of now, and as for the author's own jobs: a queue to add to, a
-- kind that belongs to no other, keys with a kind of one's own alone. Reads only. Raises: 42501.
create or replace function jobq_private.check_author(
    login text, queue text, kind text, dedup text, graph jsonb
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _held text[];
    _enqueued text[];
    _denied record;
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

    select j.queue, j.kind into _denied
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
    limit 1;
    if found then
        perform jobq_private.raise_error('ENQUEUE_DENIED', format(
            'queue %s, kind %s, log-in %s', coalesce(_denied.queue, 'of the kind'), _denied.kind,
            check_author.login
        ));
    end if;
    return true;
end
$$;

revoke all on function jobq_private.check_author from public;

comment on function jobq_private.check_author is
'Whether who has declared a schedule may add its jobs.';

-- Purpose: refuse a grant by queue that cannot be meant, and find the role.
-- Invariant: reads only. Raises: 22004, 22023.
create or replace function jobq_private.check_queue_grant(
    grantee text, queue text, privilege text
)
returns regrole
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _grantee constant regrole := (
        select r.oid from pg_catalog.pg_roles as r
        where r.rolname = check_queue_grant.grantee
    );
begin
    if num_nulls(grantee, queue, privilege) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'grantee, queue and privilege');
    elsif _grantee is null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'grantee must be a role');
    elsif length(queue) not between 1 and 128 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'queue must have 1 to 128 characters'
        );
    elsif privilege not in ('enqueue', 'work') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'privilege must be enqueue or work'
        );
    end if;
    return _grantee;
end
$$;

revoke all on function jobq_private.check_queue_grant from public;

comment on function jobq_private.check_queue_grant is
'Refuses a grant by queue that cannot be meant, and returns the role.';

-- Purpose: the queues that whoever has logged in may use: one row, for the policies.
-- Invariant: decided by session_user, which only a superuser can change, and by the roles
-- whose privileges it has; no setting and no SET ROLE counts. Who may act as jobq_owner
-- holds all queues, since it could grant itself any. An array is null, and so lets nothing
-- pass, where there is none. Raises: nothing.
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

revoke all on table jobq_private.held_queue from public;

comment on view jobq_private.held_queue is
'The queues that whoever has logged in may see, add to and work.';

-- Purpose: keep, beside a kind that names its queue, to whom it belongs.
-- Invariant: policies must know of kinds that their reader may not see, and a policy on
-- kind hides those from every query; so they look here. Raises: nothing.
create or replace function jobq_private.copy_kind_queue()
returns trigger
language plpgsql
volatile
parallel unsafe
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

revoke all on function jobq_private.copy_kind_queue from public;

comment on function jobq_private.copy_kind_queue is
'Keeps, beside a kind that names its queue, to whom it belongs.';

create or replace trigger kind_queue
after insert or update or delete on jobq_private.kind
for each row execute function jobq_private.copy_kind_queue();

-- Purpose: say why the policy of new jobs lets a job not pass; it is asked last, and never returns.
-- Invariant: a policy's own refusal has neither a code nor words for who reads it. Raises: 42501.
create or replace function jobq_private.refuse_job(queue text, kind text)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.raise_error('ENQUEUE_DENIED', format(
        'queue %s, kind %s', refuse_job.queue, refuse_job.kind
    ));
    return false;
end
$$;

revoke all on function jobq_private.refuse_job from public;

comment on function jobq_private.refuse_job is
'Refuses a new job that its log-in may not add.';

-- Purpose: have every log-in see and touch only the queues that it holds by
-- grant_queue(), or, with false, all of them again, as at first.
-- Invariant: row-level security of every table that has a policy, forced, so that it
-- holds for jobq's own functions too; while it is off the policies cost nothing. Waits
-- for transactions under way, 5 s at most for each table, and begins again where it meets one
-- that waits for it. For jobq_owner alone.
-- Raises: 22004, 55P03.
-- Argument enforced: false ends it.
-- Example: select jobq.enforce_queue_grants();
create or replace function jobq.enforce_queue_grants(enforced boolean default true)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
    _table text;
begin
    if enforced is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'enforced');
    end if;
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

revoke all on function jobq.enforce_queue_grants from public;

comment on function jobq.enforce_queue_grants is
'Has every log-in see and touch only the queues that it holds; false ends that. For jobq_owner alone.';

-- Purpose: let a role use a queue, or '*' for all of them, once grants by queue are
-- enforced: enqueue to add, see and cancel its jobs, work for everything else.
-- Invariant: says which queues, as EXECUTE says which functions; a role needs both. For
-- jobq_owner alone. Granting again changes nothing. Raises: 22004, 22023.
-- Argument queue: the queue, or * for all of them.
-- Example: select jobq.grant_queue('jobq_producer', 'mail', 'enqueue');
create or replace function jobq.grant_queue(grantee text, queue text, privilege text)
returns void
language plpgsql
volatile
parallel unsafe
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

revoke all on function jobq.grant_queue from public;

comment on function jobq.grant_queue is
'Lets a role use a queue, or * for all: privilege enqueue or work. For jobq_owner alone.';

-- Purpose: the grants by queue: all of them for who may act as jobq_owner, one's own for
-- everybody else.
-- Invariant: reads only; as held_queue, decided by who has logged in. Raises: nothing.
create or replace view jobq.queue_grant as
select g.grantee::text as grantee, g.queue, g.privilege
from jobq_private.queue_grant as g
where pg_has_role(session_user, g.grantee, 'usage')
or pg_has_role(session_user, 'jobq_owner', 'usage');

revoke all on table jobq.queue_grant from public;
grant select on jobq.queue_grant
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on view jobq.queue_grant is
'Which queues one may use once grants by queue are enforced; the owner sees everybody''s.';

-- Purpose: which queues log-ins may use once grants by queue are enforced.
-- Invariant: reads only; as jobq.queue_grant, decided by who has logged in. Raises:
-- nothing.
-- Column queue: the queue, or * for all of them.
-- Example: select * from jobq.list_queue_grants();
create or replace function jobq.list_queue_grants()
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

revoke all on function jobq.list_queue_grants from public;
grant execute on function jobq.list_queue_grants
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_queue_grants is
'Lists which queues one may use once grants by queue are enforced; the owner sees everybody''s.';

-- Purpose: take back what grant_queue() gave.
-- Invariant: holds for the next call of every session. For jobq_owner alone. Revoking
-- again changes nothing. Raises: 22004, 22023.
-- Argument grantee: the role; of one that was dropped, the number that stands in its place
-- in jobq.list_queue_grants().
-- Argument queue: the queue, or * as it was granted.
-- Example: select jobq.revoke_queue('jobq_producer', 'mail', 'enqueue');
create or replace function jobq.revoke_queue(grantee text, queue text, privilege text)
returns void
language plpgsql
volatile
parallel unsafe
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

revoke all on function jobq.revoke_queue from public;

comment on function jobq.revoke_queue is
'Takes back what grant_queue() gave. For jobq_owner alone.';

commit;
