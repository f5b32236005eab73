-- The foreign key checks every change of every job: each needs its row of the transitions, whoever
-- makes it, and no other.
-- Needs more than the core.
begin;
select plan(3);

select jobq.put_kind('traceless', keep_succeeded => '0');

create temporary table change (name text, from_state text, to_state text, statement text);
insert into change values
('claim', 'queued', 'running', 'select from jobq.claim(''{q}'', ''w'')'),
('claim a retry', 'retrying', 'running', 'select from jobq.claim(''{q}'', ''w'')'),
('claim_job', 'queued', 'running', 'select from jobq.claim_job(%1$L, ''w'')'),
('claim_job of a retry', 'retrying', 'running', 'select from jobq.claim_job(%1$L, ''w'')'),
('exchange', 'queued', 'running', 'select from jobq.exchange(''{q}'', ''w'', 1)'),
('complete', 'running', 'succeeded', 'select jobq.complete(%1$L, %2$s)'),
('complete_many', 'running', 'succeeded', 'select jobq.complete_many(array[%1$L]::uuid[], ''{%2$s}'')'),
('exchange a success', 'running', 'succeeded',
    'select from jobq.exchange(''{none}'', ''w'', 0, array[%1$L]::uuid[], ''{%2$s}'')'),
('complete without a trace', 'running', 'succeeded', 'select jobq.complete(%1$L, %2$s)'),
('fail', 'running', 'retrying', 'select jobq.fail(%1$L, %2$s, ''boom'')'),
('fail for good', 'running', 'dead', 'select jobq.fail(%1$L, %2$s, ''boom'', retryable => false)'),
('exchange a failure', 'running', 'retrying',
    'select from jobq.exchange(''{none}'', ''w'', 0, failures => ''[{"job_id": "%1$s", "attempt": %2$s, "error": "e"}]'')'),
('release', 'running', 'queued', 'select jobq.release(%1$L, %2$s)'),
('confirm_cancel', 'running', 'cancelled',
    'select jobq.cancel(%1$L); select jobq.confirm_cancel(%1$L, %2$s)'),
('recover', 'running', 'retrying',
    'set local session_replication_role = replica;'
    'update jobq_private.job set lease_expires_at = now() - interval ''1 min'' where job_id = %1$L;'
    'set local session_replication_role = origin; select from jobq_internal.recover(10)'),
('cancel', 'queued', 'cancelled', 'select jobq.cancel(%1$L)'),
('cancel a retry', 'retrying', 'cancelled', 'select jobq.cancel(%1$L)'),
('cancel a blocked job', 'blocked', 'cancelled', 'select jobq.cancel(%1$L)'),
('redrive', 'dead', 'queued', 'select jobq.redrive(%1$L)'),
('redrive a cancelled job', 'cancelled', 'queued', 'select jobq.redrive(%1$L)');
-- the same changes, and all others, by the owner of the tables and through the view
insert into change
select
    'raw SQL', t.from_state, t.to_state,
    format('update jobq_private.%s set state = %L where job_id = %%1$L',
        case when t.from_state in ('dead', 'cancelled') then 'job_archive' else 'job' end, t.to_state)
from jobq_private.transition as t
union all
select
    'raw SQL that names no slot', t.from_state, t.to_state,
    format('update jobq_private.job set state = %L, transition_slot = null where job_id = %%1$L',
        t.to_state)
from jobq_private.transition as t
where t.from_state not in ('dead', 'cancelled')
union all
select
    'the view', t.from_state, t.to_state,
    format('update jobq.job set state = %L where job_id = %%1$L', t.to_state)
from jobq_private.transition as t
-- what has no parent to wait for does not go back to blocked
where t.to_state <> 'blocked';

create function pg_temp.job_in(state text, kind text, out job_id uuid, out attempt integer)
language plpgsql
as $$
begin
    job_id := jobq.enqueue(kind, queue => 'q', after => case job_in.state
        when 'blocked' then array[jobq.enqueue('parent', queue => 'parents')]
    end);
    if job_in.state in ('running', 'retrying', 'dead') then
        perform jobq.claim_job(job_id, 'w');
    end if;
    case job_in.state
        when 'retrying' then perform jobq.fail(job_id, 1, 'boom', retry_in => '0 s');
        when 'dead' then perform jobq.fail(job_id, 1, 'boom', retryable => false);
        when 'cancelled' then perform jobq.cancel(job_id);
        else null;
    end case;
    attempt := (job_in.state in ('running', 'retrying', 'dead'))::integer;
end
$$;

-- What a change gives without its own transition, or without all others but those into its first
-- state (a row that its own transaction has written is checked at each update): ok, or what refuses it.
create function pg_temp.outcome(change change, is_missing boolean)
returns text
language plpgsql
as $$
declare
    _job record;
    _constraint text;
begin
    _job := pg_temp.job_in(
        change.from_state, case when change.name ~ 'trace' then 'traceless' else 'work' end
    );
    set local session_replication_role = replica;
    delete from jobq_private.transition as t
    where ((t.from_state, t.to_state) = (change.from_state, change.to_state)) = is_missing
    and (is_missing or t.to_state <> change.from_state);
    delete from jobq_private.transition_slot as t
    where ((t.from_state, t.to_state) = (change.from_state, change.to_state)) = is_missing
    and (is_missing or t.to_state <> change.from_state);
    set local session_replication_role = origin;
    execute format(change.statement, _job.job_id, _job.attempt);
    raise exception using errcode = 'XX999';
exception
    when sqlstate 'XX999' then
        return 'ok';
    when others then
        get stacked diagnostics _constraint = constraint_name;
        return sqlstate || ' ' || _constraint;
end
$$;

create temporary table tried as
select
    c.name, c.from_state, c.to_state, m.is_missing, pg_temp.outcome(c, m.is_missing) as outcome
from change as c
cross join (values (true), (false)) as m (is_missing);

select is_empty(
    $$
    select t.name, t.from_state, t.to_state, t.outcome from tried as t
    where t.is_missing and t.outcome not like '23503 job%transition_fkey'
    $$,
    'without its transition every change fails, whoever makes it'
);
select is_empty(
    $$
    select t.name, t.from_state, t.to_state, t.outcome from tried as t
    where not t.is_missing and t.outcome <> 'ok'
    $$,
    'and it needs no other'
);

select is_empty(
    $$
    select c.oid::regclass from pg_class as c
    where c.relnamespace::regnamespace::text ~ '^jobq' and c.relpersistence <> 'p'
    and c.relkind <> 'v'
    $$,
    'no relation is unlogged, so a standby can be promoted at any time'
);

select * from finish();
rollback;
