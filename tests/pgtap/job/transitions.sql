-- The state machine, by raw SQL as the owner of the tables: each of the 49 pairs of
-- Needs more than the core.
-- states, and everything that somebody might forge. The legal pairs stand here once
-- more, so that a row added to the transitions table must be added here.
begin;
-- One for each column of the archive but its state, and 255 others.
select plan(257 + (
    select count(*)::integer
    from pg_catalog.pg_attribute as c
    where c.attrelid = 'jobq_private.job_archive'::regclass and c.attnum > 0
    and not c.attisdropped and c.attname <> 'state'
));

create temporary table state (state text, is_live boolean, ordinal integer);
insert into state values
('queued', true, 1), ('running', true, 2), ('retrying', true, 3),
('succeeded', false, 4), ('dead', false, 5), ('cancelled', false, 6),
('blocked', true, 7);

create temporary table legal (from_state text collate "C", to_state text collate "C");
insert into legal values
('queued', 'running'), ('retrying', 'running'), ('running', 'succeeded'),
('running', 'retrying'), ('running', 'dead'), ('running', 'cancelled'),
('running', 'queued'), ('queued', 'cancelled'), ('retrying', 'cancelled'),
('queued', 'dead'), ('retrying', 'dead'), ('dead', 'queued'), ('cancelled', 'queued'),
('dead', 'blocked'), ('cancelled', 'blocked'), ('blocked', 'queued'),
('blocked', 'cancelled'), ('blocked', 'dead');

-- What a statement gives when the owner runs it: ok, or the SQLSTATE and the constraint
-- or code that refused it.
create function pg_temp.as_owner(statement text)
returns text
language plpgsql
as $$
declare
    _constraint text;
    _rows bigint;
begin
    set local role jobq_owner;
    execute statement;
    get diagnostics _rows = row_count;
    reset role;
    return case _rows when 1 then 'ok' else _rows || ' rows' end;
exception
    when others then
        get stacked diagnostics _constraint = constraint_name;
        return sqlstate || ' ' || _constraint;
end
$$;

-- A job in this state, brought there by functions alone.
create function pg_temp.job_in(state text)
returns uuid
language plpgsql
as $$
declare
    _job_id uuid := jobq.enqueue('work', '{"n": 1}',
        dedup_key => jobq_private.new_id(0)::text,
        after => case job_in.state when 'blocked' then array[jobq.enqueue('parent')] end);
begin
    if job_in.state in ('running', 'retrying', 'succeeded', 'dead') then
        perform jobq.claim_job(_job_id, 'w');
    end if;
    case job_in.state
        when 'retrying' then perform jobq.fail(_job_id, 1, 'boom');
        when 'succeeded' then perform jobq.complete(_job_id, 1, '{"r": 1}');
        when 'dead' then perform jobq.fail(_job_id, 1, 'boom', retryable => false);
        when 'cancelled' then perform jobq.cancel(_job_id, 'unwanted');
        else null;
    end case;
    return _job_id;
end
$$;

create function pg_temp.table_of(state text)
returns text
language sql
as $$
select case when s.is_live then 'jobq_private.job' else 'jobq_private.job_archive' end
from state as s
where s.state = table_of.state
$$;

-- Every pair, each on a job of its own; of live jobs once more by who names no slot
create temporary table tried (
    from_state text, to_state text, more text, job_id uuid, attempt_before integer, outcome text
);
do $$
declare
    _pair record;
    _job_id uuid;
begin
    for _pair in
        select f.state as from_state, t.state as to_state, m.more
        from state as f cross join state as t cross join (values (''), (', transition_slot = null')) as m (more)
        where f.is_live or m.more = ''
        order by f.ordinal, t.ordinal, m.more
    loop
        _job_id := pg_temp.job_in(_pair.from_state);
        insert into tried
        select
            _pair.from_state, _pair.to_state, _pair.more, _job_id,
            (jobq.get_job(_job_id)).attempt,
            pg_temp.as_owner(format(
                'update %s set state = %L%s where job_id = %L',
                pg_temp.table_of(_pair.from_state), _pair.to_state, _pair.more, _job_id
            ));
    end loop;
    -- A redrive of the archive's row takes it away, so that no row counts as updated.
    update tried as t
    set outcome = 'ok'
    where t.outcome = '0 rows'
    and t.from_state in ('dead', 'cancelled')
    and exists (
        select from jobq_private.job as j
        where j.job_id = t.job_id and j.previous_state = t.from_state and j.state = t.to_state
    );
end
$$;

select is(
    t.outcome,
    case
        when l.from_state is not null then 'ok'
        when t.from_state <> t.to_state and f.is_live then '23503 job_transition_fkey'
        when t.from_state <> t.to_state then '23503 job_archive_transition_fkey'
        when f.is_live then 'ok'
        else 'JQ002 IMMUTABLE'
    end,
    format(
        '%s to %s%s is %s', t.from_state, t.to_state, t.more,
        case
            when l.from_state is not null then 'legal'
            when t.from_state = t.to_state and f.is_live then 'no change'
            else 'refused'
        end
    )
)
from tried as t
join state as f on f.state = t.from_state
join state as n on n.state = t.to_state
left join legal as l on l.from_state = t.from_state and l.to_state = t.to_state
order by f.ordinal, n.ordinal, t.more;
select results_eq(
    'select from_state, to_state from jobq_private.transition order by 1, 2',
    'select from_state, to_state from legal order by 1, 2',
    'the transitions table has just the legal pairs'
);

select is_empty(
    $$
    select n.slot, t.from_state, t.to_state
    from generate_series(0, 1023) as n (slot)
    cross join jobq_private.transition as t
    except
    select l.slot, l.from_state, l.to_state from jobq_private.transition_slot as l
    $$,
    'the legal pairs are legal in the slot of every session'
);

-- Where the row is afterwards
select is(
    (
        select array_agg(
            r.place || ' ' || r.state || coalesce(' after ' || r.previous_state, '')
        )
        from (
            select 'live' as place, j.state, j.previous_state
            from jobq_private.job as j
            where j.job_id = t.job_id
            union all
            select 'archived', a.state, a.previous_state
            from jobq_private.job_archive as a
            where a.job_id = t.job_id
        ) as r
    ),
    array[
        case when n.is_live then 'live ' else 'archived ' end || t.to_state
        || ' after ' || t.from_state
    ],
    format('%s to %s%s leaves one row, in the right table', t.from_state, t.to_state, t.more)
)
from tried as t
join legal as l on l.from_state = t.from_state and l.to_state = t.to_state
join state as n on n.state = t.to_state
order by t.from_state, t.to_state, t.more;
select is_empty(
    $$
    select t.from_state, t.to_state, j.state
    from tried as t
    cross join lateral jobq.get_job(t.job_id) as j
    where t.outcome <> 'ok' and (j.state <> t.from_state
    or j.attempt <> t.attempt_before)
    $$,
    'a refused change leaves the job as it was'
);
select is_empty(
    $$
    select t.from_state
    from tried as t
    join jobq_private.job as j on j.job_id = t.job_id
    where t.from_state = t.to_state
    and j.previous_state is distinct from
        case t.from_state
            when 'running' then 'queued'
            when 'retrying' then 'running'
        end
    $$,
    'setting the state that a live job has does not touch its previous state'
);

-- History and lease
select is(
    (
        select array_agg(a.attempt || ' ' || a.state order by a.attempt)
        from jobq.attempt as a
        where a.job_id = t.job_id
    ),
    array['1 ' || t.to_state],
    format('running to %s records the attempt', t.to_state)
)
from tried as t
where t.from_state = 'running' and t.to_state not in ('running', 'blocked')
order by t.to_state;
select is_empty(
    $$
    select t.from_state, t.to_state
    from tried as t
    join jobq_private.job as j on j.job_id = t.job_id
    where t.from_state <> t.to_state and t.to_state = 'running' and t.outcome = 'ok'
    and (
        j.attempt <> t.attempt_before + 1
        or j.worker is distinct from session_user
        or j.claimed_at not between now() and clock_timestamp()
        or j.lease_expires_at <> j.claimed_at + j.lease
    )
    $$,
    'a raw change to running counts an attempt and starts a lease'
);
select is_empty(
    $$
    select t.from_state, t.to_state
    from tried as t
    cross join lateral jobq.get_job(t.job_id) as j
    where t.from_state = 'running' and t.to_state not in ('running', 'blocked')
    and (
        j.lease_expires_at is not null
        or (j.finished_at is null and num_nonnulls(j.worker, j.claimed_at) > 0)
        or j.attempts <> (t.to_state <> 'queued')::integer
    )
    $$,
    'leaving running ends the lease; back to queued does not count the attempt'
);
select is_empty(
    $$
    select t.from_state
    from tried as t
    join jobq_private.job as j on j.job_id = t.job_id
    where t.to_state = 'queued' and t.from_state in ('dead', 'cancelled')
    and (j.attempt <> t.attempt_before or j.attempt <> j.uncounted)
    $$,
    'a raw redrive goes on counting attempts and forgives those that were spent'
);

-- Not states at all
select pg_temp.job_in('queued') as waiting, pg_temp.job_in('running') as held,
    pg_temp.job_in('dead') as ended \gset
select is(
    pg_temp.as_owner(format('update %s set state = %s where job_id = %L', n.rel, n.word,
        n.id)),
    n.refusal, format('%s is no state for a row of %s', n.word, n.rel)
)
from (
    values
    ('jobq_private.job', '''paused''', :'waiting', '23503 job_transition_fkey'),
    ('jobq_private.job', '''''', :'waiting', '23503 job_transition_fkey'),
    ('jobq_private.job', '''RUNNING''', :'waiting', '23503 job_transition_fkey'),
    ('jobq_private.job', 'null', :'waiting', '23502 '),
    ('jobq_private.job', '''paused'', transition_slot = null', :'waiting',
        '23503 job_transition_fkey'),
    ('jobq_private.job', '''running'', transition_slot = null', :'held', 'ok'),
    ('jobq_private.job', '''running'', transition_slot = -1', :'held', 'ok'),
    ('jobq_private.job_archive', '''paused''', :'ended',
        '23503 job_archive_transition_fkey'),
    ('jobq_private.job_archive', 'null', :'ended', '23502 ')
) as n (rel, word, id, refusal);

-- Forged columns of a live job, alone and together with a legal change of state
create temporary table forgery (forged text, expression text);
insert into forgery values
('job_id', 'gen_random_uuid()'), ('kind', '''other'''), ('payload', '''{"n": 2}'''),
('created_at', 'created_at - interval ''1 s'''), ('idempotency_key', '''mine'''),
('dedup_key', '''other'''), ('dedup', '''replace'''),
('schedule_id', 'gen_random_uuid()'),
('slot_at', 'now()'), ('batch_id', 'gen_random_uuid()'), ('delivery_version', '1'), ('previous_state', '''dead'''),
('attempt', 'attempt + 1'),
('attempt', 'attempt - 1'), ('uncounted', 'uncounted + 1'),
('lease_expires_at', 'now() + interval ''1 day'''),
('claimed_at', 'now() - interval ''1 s''');
select is(
    pg_temp.as_owner(format(
        'update jobq_private.job set %I = %s where job_id = %L', f.forged, f.expression,
        j.id
    )),
    'JQ002 IMMUTABLE',
    format('%s of a %s job cannot be set to %s', f.forged, j.state, f.expression)
)
from forgery as f
cross join (values ('queued', :'waiting'), ('running', :'held')) as j (state, id)
where (f.forged, j.state) <> ('payload', 'queued');
select is(
    pg_temp.as_owner(format(
        'update jobq_private.job set state = ''running'', %I = %s where job_id = %L',
        f.forged, f.expression, :'waiting'
    )),
    'JQ002 IMMUTABLE',
    format('a claim cannot bring along %s = %s', f.forged, f.expression)
)
from forgery as f;
select is(
    pg_temp.as_owner(format(
        'update jobq_private.job set %s where job_id = %L', f.setting, f.id
    )),
    f.outcome, f.claim
)
from (
    values
    (:'held', 'worker = ''thief''', 'JQ002 IMMUTABLE',
        'a running job cannot change hands'),
    (:'waiting', 'worker = ''thief''', 'JQ002 IMMUTABLE',
        'a waiting job has no worker'),
    (:'waiting', 'heartbeat_at = now()', 'JQ002 IMMUTABLE',
        'a waiting job has no heartbeat'),
    (:'held', 'lease_expires_at = null', 'JQ002 IMMUTABLE',
        'a lease cannot be taken away'),
    (:'waiting', 'max_attempts = 0', 'JQ002 ILLEGAL_STATE',
        'a job has one attempt at least'),
    (:'held', 'max_attempts = -7', 'JQ002 ILLEGAL_STATE',
     'nor is a running job given a number of attempts that none can have'),
    (:'held', 'timeout = ''-1 s''', 'JQ002 ILLEGAL_STATE',
     'or a timeout that none can have'),
    (:'held', 'lease = ''2 days''', 'JQ002 ILLEGAL_STATE', 'or a lease'),
    (:'held', 'max_attempts = 1, state = ''retrying''', 'JQ002 ILLEGAL_STATE',
        'a job without attempts left cannot wait for another'),
    (:'waiting', 'dedup = ''replace''', 'JQ002 IMMUTABLE',
        'how a job holds its dedup key cannot be changed')
) as f (id, setting, outcome, claim);

-- start_jobs() may stamp the job itself, but only as the database would; nobody else may
create function jobq_private.start_jobs(statement text)
returns void
language plpgsql
security definer
as $$
begin
    execute statement;
end
$$;
select is(pg_temp.as_owner(w.wrapped), w.outcome, s.claim || w.who)
from (
    values
    ('queued', 'state', 'now_', 'now_ + lease', 'transition_slot = pg_backend_pid() & 1023', 'ok', 'a claim may stamp all itself'),
    ('blocked', 'state', 'now_', 'now_ + lease', 'transition_slot = pg_backend_pid() & 1023', 'JQ002 IMMUTABLE',
        'though not of a job that waits for others'),
    ('running', 'state', 'now_', 'now_ + lease', 'transition_slot = pg_backend_pid() & 1023', 'JQ002 IMMUTABLE',
        'nor of one that runs'),
    ('queued', '''retrying''', 'now_', 'now_ + lease', 'transition_slot = pg_backend_pid() & 1023', 'JQ002 IMMUTABLE',
        'it cannot name another state before'),
    ('queued', 'state', 'now_ - interval ''1 h''', 'now_ - interval ''1 h'' + lease', 'transition_slot = pg_backend_pid() & 1023',
        'ok', 'if its time is too early'),
    ('queued', 'state', 'now_ + interval ''1 h''', 'now_ + interval ''1 h'' + lease', 'transition_slot = pg_backend_pid() & 1023',
        'ok', 'or too late'),
    ('queued', 'state', 'now_', 'now_ + lease + interval ''1 s''', 'transition_slot = pg_backend_pid() & 1023', 'JQ002 IMMUTABLE',
        'its lease cannot be longer'),
    ('queued', 'state', 'now_', 'now_ + lease', 'transition_slot = -1', 'ok',
        'the slot is that of the session, whatever was written'),
    ('queued', 'state', 'now_', 'now_ + lease', 'transition_slot = pg_backend_pid() & 1023, uncounted = 1', 'JQ002 IMMUTABLE',
        'it gives no attempt back'),
    ('queued', 'state', 'now_', 'now_ + lease', 'transition_slot = pg_backend_pid() & 1023, heartbeat_at = now_',
        'JQ002 IMMUTABLE', 'it brings no heartbeat')
) as f (state, previous_state, claimed_at, lease_expires_at, more, outcome, claim)
cross join lateral (
    select
        f.state, f.previous_state, f.outcome, f.claim,
        replace(f.claimed_at, 'now_', 'statement_timestamp()') as claimed_at,
        replace(f.lease_expires_at, 'now_', 'statement_timestamp()') as lease_expires_at,
        replace(f.more, 'now_', 'statement_timestamp()') as more
) as s
cross join lateral (
    select format(
        'update jobq_private.job set state = ''running'', worker = ''w'', attempt = attempt + 1,'
        ' previous_state = %s, claimed_at = %s, lease_expires_at = %s, %s where job_id = %L',
        s.previous_state, s.claimed_at, s.lease_expires_at, s.more, pg_temp.job_in(s.state)
    ) as stamp
) as u
cross join lateral (
    values
    (u.stamp, 'JQ002 IMMUTABLE', ', but not by hand'),
    (format('select jobq_private.start_jobs(%L)', u.stamp), s.outcome, '')
) as w (wrapped, outcome, who);
select is_empty(
    $$
    select from jobq_private.job as j
    where j.state = 'running'
    and (
        j.claimed_at not between now() and clock_timestamp()
        or j.lease_expires_at <> j.claimed_at + j.lease
    )
    $$,
    'the database stamps its own time'
);

-- A heartbeat by raw SQL is stamped by the database
select is(
    pg_temp.as_owner(format(
        'update jobq_private.job set heartbeat_at = ''2999-01-01'' where job_id = %L',
        :'held'
    )),
    'ok', 'the owner may give a heartbeat'
);
select ok(
    j.heartbeat_at <= clock_timestamp()
    and j.lease_expires_at = j.heartbeat_at + j.lease,
    'the time of a heartbeat is the database''s, whatever was written'
)
from jobq_private.job as j
where j.job_id = :'held';

-- Forged columns of a finished job: every one of them, but for how long it is kept
select is(
    pg_temp.as_owner(format(
        'update jobq_private.job_archive set %I = %s where job_id = %L',
        c.attname,
        case c.atttypid::regtype::text
            when 'uuid' then 'gen_random_uuid()'
            when 'timestamp with time zone' then '''2001-01-01'''
            when 'interval' then '''9 days'''
            when 'interval[]' then '''{9 days}'''
            when 'integer' then '99'
            when 'smallint' then '99'
            when 'boolean' then 'not is_awaited'
            when 'text' then '''forged'''
            when 'jobq_private.last_error' then '''forged'''
            when 'jobq_private.dedup' then '''replace'''
            when 'jobq_private.cost' then '99'
            when 'jobq_private.instant' then '''2999-01-01'''
            when 'jsonb' then '''{"forged": true}'''
        end,
        :'ended'
    )),
    case c.attname when 'prune_at' then 'ok' else 'JQ002 IMMUTABLE' end,
    format('%s of a finished job cannot be changed', c.attname)
)
from pg_catalog.pg_attribute as c
where c.attrelid = 'jobq_private.job_archive'::regclass and c.attnum > 0
and not c.attisdropped and c.attname <> 'state';
select is(
    pg_temp.as_owner(format(
        'update jobq_private.job_archive set state = ''queued'', %s where job_id = %L',
        f.setting, :'ended'
    )),
    'JQ002 IMMUTABLE', format('a redrive cannot bring along %s', f.setting)
)
from (
    values ('payload = ''{}'''), ('attempt = 0'), ('max_attempts = 9'),
    ('result = ''1''')
) as f (setting);

-- Forged rows
create function pg_temp.inserted(columns text, expressions text)
returns text
language sql
as $$
select pg_temp.as_owner(format(
    'insert into jobq_private.job (job_id, lease, timeout, max_attempts, queue, kind%s)'
    ' values (gen_random_uuid(), ''30 s'', ''5 min'', 5, ''q'', ''work''%s)',
    columns, expressions
))
$$;
select is(pg_temp.inserted('', ''), 'ok', 'the owner may insert a new job');
select is(
    pg_temp.inserted(', ' || f.columns, ', ' || f.expressions), f.refusal,
    format('no job is born with %s = %s', f.columns, f.expressions)
)
from (
    values
    ('state', '''running''', 'JQ002 ILLEGAL_STATE'),
    ('state, previous_state', '''running'', ''queued''', 'JQ002 ILLEGAL_STATE'),
    ('state, previous_state, lease_expires_at', '''running'', ''queued'', now()',
        'JQ002 ILLEGAL_STATE'),
    ('state', '''retrying''', 'JQ002 ILLEGAL_STATE'),
    ('state, previous_state', '''retrying'', ''running''', 'JQ002 ILLEGAL_STATE'),
    ('state, previous_state', '''succeeded'', ''running''', 'JQ002 ILLEGAL_STATE'),
    ('state', '''nonsense''', 'JQ002 ILLEGAL_STATE'),
    ('previous_state', '''running''', 'JQ002 ILLEGAL_STATE'),
    ('previous_state', '''dead''', 'JQ002 ILLEGAL_STATE'),
    ('previous_state, attempt, uncounted', '''cancelled'', 3, 3',
        'JQ002 ILLEGAL_STATE'),
    ('lease_expires_at', 'now()', 'JQ002 ILLEGAL_STATE'),
    ('claimed_at', 'now()', 'JQ002 ILLEGAL_STATE'),
    ('worker', '''w''', 'JQ002 ILLEGAL_STATE'),
    ('attempt', '3', 'JQ002 ILLEGAL_STATE'),
    ('uncounted', '100', 'JQ002 ILLEGAL_STATE'),
    ('attempt, uncounted', '3, 3', 'JQ002 ILLEGAL_STATE'),
    ('concurrency_key', '''k''', 'JQ002 ILLEGAL_STATE'),
    ('max_attempts', '0', '42701 '),
    ('dedup_key, dedup', '''k'', ''enqueue''', '23514 job_dedup_check')
) as f (columns, expressions, refusal);
select is(
    pg_temp.as_owner(format(
        'insert into jobq_private.job_archive (job_id, lease, timeout, max_attempts,'
        ' queue, kind, finished_at, state, previous_state)'
        ' values (gen_random_uuid(), ''30 s'', ''5 min'', 5, ''q'', ''work'', now(),'
        ' %L, %L)', f.state, f.previous_state
    )),
    f.refusal,
    format('no finished job is born %s after %s', f.state,
        coalesce(f.previous_state, 'nothing'))
)
from (
    values
    ('succeeded', 'queued', '23503 job_archive_transition_fkey'),
    ('succeeded', null, '23502 '),
    ('dead', 'succeeded', '23503 job_archive_transition_fkey'),
    ('running', 'queued', 'JQ002 ILLEGAL_STATE'),
    ('retrying', 'running', 'JQ002 ILLEGAL_STATE'),
    ('running', 'dead', '23503 job_archive_transition_fkey'),
    ('queued', 'succeeded', '23503 job_archive_transition_fkey'),
    ('queued', 'dead', 'JQ002 ILLEGAL_STATE'),
    ('queued', 'cancelled', 'JQ002 ILLEGAL_STATE')
) as f (state, previous_state, refusal);

select is(
    pg_temp.as_owner(
        'insert into jobq_private.job_archive (job_id, lease, timeout, max_attempts,'
        ' queue, kind, finished_at, transition_slot, state, previous_state)'
        ' values (gen_random_uuid(), ''30 s'', ''5 min'', 5, ''q'', ''work'', now(),'
        ' null, ''succeeded'', ''running'')'
    ),
    '23502 ', 'no finished job passes the foreign key by a null'
);

-- The rules themselves
select is(
    pg_temp.as_owner(s.statement), s.refusal,
    format('the rules in use cannot be changed: %s', s.statement)
)
from (
    values
    ('delete from jobq_private.transition where to_state = ''dead''
    and from_state = ''running''',
        '23503 job_archive_transition_fkey'),
    ('update jobq_private.transition set to_state = ''dead2''
    where from_state = ''running''
        and to_state = ''dead''', '23503 job_archive_transition_fkey'),
    ('delete from jobq_private.transition where from_state = ''queued''
        and to_state = ''running''', '23503 job_transition_fkey'),
    ('truncate jobq_private.transition', '0A000 ')
) as s (statement, refusal);
insert into jobq_private.transition values ('succeeded', 'dead', 'for this test');
select results_eq(
    $$
    select count(*) from jobq_private.transition_slot as l
    where l.from_state = 'succeeded' and l.to_state = 'dead'
    $$,
    'values (1024::bigint)',
    'what is added to the rules is legal in every slot'
);

select * from finish();
rollback;
