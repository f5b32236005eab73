-- Deploy jobq:workflow to pg, after @v1.0.0
begin;
set local role jobq_owner;
set local check_function_bodies = off;

drop routine if exists jobq_private.child_end;
drop routine if exists jobq.list_waits;

-- Purpose: link new jobs to the jobs that they wait for, and to their batches.
-- Invariant: locks no parent, because it may run for long: adds a row to pending, so
-- that after the commit resolve() finds parents that ended meanwhile. Marks parents
-- created by this transaction as awaited. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.attach_jobs(jobs jobq_private.new_job[])
returns void language plpgsql as $$
declare
    _batches constant uuid[] := array(
        select j.batch_id from unnest(attach_jobs.jobs) as j where j.batch_id is not null
    );
    _parents constant uuid[] := array(
        select distinct a.parent
        from unnest(attach_jobs.jobs) as j
        cross join lateral unnest(j.after) as a (parent)
    );
    _new uuid[];
begin
    if _batches <> '{}' then
        perform jobq_private.join_batches(_batches);
    end if;
    perform jobq_private.check_given(
        'a job_id in after', num_nonnulls(array_position(_parents, null))
    );
    perform jobq_private.check_argument((
        select 'after must have at most 100000 jobs'
        from unnest(attach_jobs.jobs) as j where cardinality(j.after) > 100000
        limit 1
    ));

    insert into jobq_private.edge (child, parent, after_failure)
    -- store_dedup_job() gives two: that of the first one, and that of all others
    select distinct
        j.job_id, a.parent,
        split_part(coalesce(j.after_failure, 'cancel'), ',', case a.n when 1 then 1 else -1 end)
    from unnest(attach_jobs.jobs) as j
    cross join lateral unnest(j.after) with ordinality as a (parent, n);
    perform jobq_private.check_problem('JOB_NOT_FOUND', (
        select format('job_id %s', p.parent)
        from unnest(_parents, jobq_private.ends_of(_parents)) as p (parent, ended_as)
        where p.ended_as = 'gone'
        limit 1
    ));
    -- This transaction has created these, so nobody else can lock their rows.
    update jobq_private.job as j
    set is_awaited = true
    where j.job_id = any(_parents) and j.created_at = now() and not j.is_awaited;
    _new := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_parents) and j.created_at = now()
    );
    insert into jobq_private.pending (about, id)
    select 'child', j.job_id
    from unnest(attach_jobs.jobs) as j
    where exists (
        select from unnest(j.after) as a (parent)
        where a.parent not in (select n from unnest(_new) as n)
    );
end
$$;

-- Purpose: refuse an invalid event.
-- Invariant: reads the limits of a payload. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_event(event text, payload jsonb)
returns void language plpgsql stable as $$
begin
    perform jobq_private.check_given('event and payload', num_nulls(
        check_event.event, check_event.payload
    ));
    perform jobq_private.check_argument(case
        when length(check_event.event) not between 1 and 256
        then 'event must have 1 to 256 characters'
    end);
    perform jobq_private.check_problem(p.problem[1], 'payload: ' || p.problem[2])
    from jobq_private.setting as g
    cross join lateral jobq_private.value_problem(
        check_event.payload, g.max_payload_bytes, g.max_payload_depth
    ) as p (problem);
end
$$;

-- Purpose: refuse the graph of a schedule that could not be added at each of its slots.
-- Invariant: its jobs depend only on each other, and none has the name of the
-- schedule's own job, its kind. Raises: 22004, 22023, JQ001, JQ005, JQ006.
create or replace function jobq_private.check_graph(graph jsonb, kind text)
returns void language plpgsql stable as $$
declare
    _nodes constant jsonb := jobq_private.graph_nodes(graph);
    _links record;
    _jobs jobq_private.new_job[];
begin
    select l.* into _links from jobq_private.graph_links(_nodes, null) as l;
    perform jobq_private.check_argument(case
        when kind = any(_links.names) or _links.others <> '{}'
            or jsonb_path_exists(_nodes, '$[*].batch_id')
        then 'a graph of a schedule may refer only to its own jobs, none named like the schedule''s kind, and to no batch'
        when jsonb_path_exists(_nodes, '$[*].keyvalue() ? (
            (@.key == "expires_at" || @.key == "run_at") && @.value != null
        )')
        then 'jobs of a schedule''s graph cannot have run_at or expires_at'
    end);
    perform jobq_private.check_arrows(_links.arrows, _links.names);
    _jobs := jobq_private.node_jobs(_nodes);
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].schedule_id := jobq_private.id_floor('epoch');
    end loop;
    perform jobq_private.check_new_jobs(_jobs);
end
$$;

-- Purpose: how a job that another one has called has ended; no row while it is live. A deleted
-- one is gone.
-- Invariant: a child is kept as long as its caller; see needed_until(). For a login with some
-- queues, one that it may not see is live.
create or replace function jobq_private.child_end(
    child_id uuid, out payload jsonb, out finished_at timestamptz
)
returns setof record language sql stable as $$
    select
        jsonb_build_object(
            'job_id', child_end.child_id, 'state', coalesce(a.state, 'gone'),
            'result', a.result, 'error_code', a.last_error_code, 'error', a.last_error
        ),
        coalesce(a.finished_at, '-infinity')
    from (select jobq_private.id_time(child_end.child_id) - interval '1 day' as since) as t
    left join lateral (
        select l.*
        from jobq_private.job_archive as l
        where l.job_id = child_end.child_id and l.finished_at >= t.since
        order by l.finished_at desc
        limit 1
    ) as a on true
    -- no join: one could read all jobs by a plan of an empty table
    where (select true from jobq_private.job as j where j.job_id = child_end.child_id limit 1) is null
    and (a.job_id is not null or jobq_private.worked_queues() is null)
$$;

-- Purpose: close the edges of parents that have ended; release children without open
-- edges, and cancel those that can never run.
-- Invariant: the caller has locked the blocked children, in held. For a child that is
-- no longer blocked, records only what cannot change: that a parent has succeeded. Open
-- edges of a cancelled child stay, so that it waits again after a redrive.
create or replace function jobq_private.close_edges(
    edges jobq_private.pending_edge[], held uuid[], queues text[]
)
returns void language plpgsql set jit = off set enable_hashjoin = off as $$
declare
    _cancelled uuid[];
    _attempts integer[];
    _released uuid[];
begin
    update jobq_private.edge as e set is_open = false
    where e.ctid = any(array(
        select d.ctid
        from unnest(edges) as t
        join jobq_private.edge as d on d.child = t.child and d.parent = t.parent and d.is_open
        where case
            when t.is_held then t.outcome = 'closes'
            else queues is null and t.ended_as = 'succeeded' and not exists (
                select from jobq_private.job as j where j.job_id = t.child and j.state = 'blocked'
            )
        end
        for update of d skip locked
    ));

    with doomed as materialized (
        select distinct on (t.child) t.child, t.parent, t.ended_as
        from unnest(edges) as t
        where t.is_held and t.outcome = 'dooms' and (queues is null or t.ended_as <> 'gone')
        order by t.child, t.parent
    ),
    cancelled as (
        update jobq_private.job as j
        set
            cancel_reason = format('the job waited for job_id %s, which is %s', d.parent, d.ended_as),
            last_error_code = case d.ended_as
                when 'gone' then 'PARENT_GONE' else 'PARENT_FAILED'
            end,
            last_error = format('job_id %s is %s', d.parent, d.ended_as)
        from doomed as d
        where j.job_id = d.child
        returning j.job_id, j.attempt
    )
    select array_agg(c.job_id), array_agg(c.attempt) into _cancelled, _attempts
    from cancelled as c;
    if _cancelled is not null then
        perform jobq_private.archive_jobs(_cancelled, _attempts, 'cancelled');
    end if;

    with released as (
        -- Due as of now, so that no claim that began before its parents' ends takes
        -- one.
        update jobq_private.job as j
        set state = 'queued', run_at = greatest(j.run_at, clock_timestamp())
        where j.job_id = any(held)
        and (j.state = 'blocked') is true
        -- From the last one: parents mostly end in order, so an open edge is found
        -- soon.
        and (
            select true
            from jobq_private.edge as e
            where e.child = j.job_id and e.is_open
            order by e.parent desc
            limit 1
        ) is null
        returning j.job_id
    )
    select array_agg(r.job_id) into _released from released as r;
    if _released is not null then
        perform jobq_private.announce_jobs(_released);
    end if;
end
$$;

-- Purpose: a batch, or an error if it does not exist.
-- Invariant: reads only. Raises: 22004, JQ001.
create or replace function jobq_private.find_batch(batch_id uuid)
returns jobq_private.batch language plpgsql stable as $$
declare
    _batch jobq_private.batch;
begin
    perform jobq_private.check_given('batch_id', num_nulls(find_batch.batch_id));
    select b.* into _batch
    from jobq_private.batch as b
    where b.batch_id = find_batch.batch_id;
    if not found then
        perform jobq_private.raise_error(
            'BATCH_NOT_FOUND', format('batch_id %s', find_batch.batch_id)
        );
    end if;
    return _batch;
end
$$;

-- Purpose: update what depends on redriven or changed jobs. Waits that the end of a job has
-- interrupted begin again, but for sleeps. Jobs that died of an event timeout, or of the failure
-- of a job that they called, wait for it again. The parents of blocked jobs are checked again,
-- and so are jobs that were not redriven although the edges of their children were opened.
-- Invariant: an unnecessary check costs a row of pending. Jobs whose parents are all redriven
-- with them need none: their parents are marked as awaited, and cannot end before the commit.
create or replace function jobq_private.follow_redriven(job_ids uuid[])
returns void language plpgsql as $$
declare
    _back uuid[];
    _ended uuid[];
    _blocked uuid[];
    _timed_out uuid[];
    _failed uuid[];
begin
    select
        coalesce(array_agg(j.job_id), '{}'),
        array_agg(j.job_id) filter (where j.previous_state in ('dead', 'cancelled')),
        array_agg(j.job_id) filter (
            where j.state = 'blocked' and j.previous_state in ('dead', 'cancelled')
        ),
        array_agg(j.job_id) filter (where j.last_error_code = 'EVENT_TIMEOUT'),
        array_agg(j.job_id) filter (where j.last_error_code = 'CHILD_FAILED')
    into _back, _ended, _blocked, _timed_out, _failed
    from jobq_private.job as j
    where j.job_id = any(follow_redriven.job_ids);
    delete from jobq_private.waiter as w
    where w.job_id = any(_ended) and w.event not like 'sleep:%';
    -- the last finished wait of each, whose timeout no handler caught; every failed child
    delete from jobq_private.step as s
    using (
        (
            select distinct on (t.job_id) t.job_id, t.name
            from jobq_private.step as t
            where t.job_id = any(_timed_out)
            and t.name like 'event:%'
            and t.name not like 'event:sleep:%'
            and t.value ->> 'outcome' = 'timed_out'
            order by t.job_id, t.saved_at desc
        )
        union all
        select t.job_id, t.name
        from jobq_private.step as t
        where t.job_id = any(_failed)
        and t.name like 'event:%'
        and starts_with(coalesce('event:' || (t.value ->> 'event'), t.name), 'event:job_ended:')
        and t.value #>> '{payload,state}' <> 'succeeded'
    ) as l
    where s.job_id = l.job_id and s.name = l.name;

    with batch as materialized (
        select b.*
        from jobq_private.batch as b
        where b.on_success = any(_blocked)
        or b.on_end = any(_blocked)
        or b.on_first_death = any(_blocked)
    )
    insert into jobq_private.pending (about, id)
    select 'parent', i.job_id
    from unnest(follow_redriven.job_ids) as i (job_id)
    where i.job_id not in (select b from unnest(_back) as b)
    union all
    select 'batch', b.batch_id from batch as b
    union all
    select 'child', w.job_id
    from unnest(_blocked) as w (job_id)
    where (
        exists (
            select from jobq_private.edge as e
            where e.child = w.job_id and e.is_open and e.parent <> all(_back)
        )
        or not exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    )
    and not exists (
        select from batch as b where w.job_id in (b.on_success, b.on_end, b.on_first_death)
    );
end
$$;

-- Purpose: the graph of a live job; a new one for null, or if it has none.
-- Invariant: a job without a graph becomes a node of its new graph, named by its kind.
-- Raises: JQ001, JQ002. Never: NULL_ARGUMENT.
create or replace function jobq_private.graph_id(graph_of uuid)
returns uuid language plpgsql as $$
declare
    _new_id constant uuid := jobq_private.new_id((
        select g.shard_id from jobq_private.setting as g
    ));
    _graph_id uuid;
    _job jobq.job;
begin
    if graph_of is null then
        return _new_id;
    end if;
    _job := jobq.get_job(graph_of);
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when _job.finished_at is not null
        then format('job_id %s is %s: it can add no more jobs to its graph', graph_of, _job.state)
    end);
    insert into jobq_private.node as n (job_id, graph_id, name)
    values (graph_of, _new_id, _job.kind)
    on conflict on constraint node_pkey do nothing;
    select n.graph_id into _graph_id from jobq_private.node as n where n.job_id = graph_of;
    return _graph_id;
end
$$;

-- Purpose: the names of the jobs of a graph, and what these name in after and before:
-- existing jobs, by id or by name in the graph that they join, and the edges by place:
-- first the new jobs, then the existing ones.
-- Invariant: each must exist. A name of a new job has precedence over one of the graph.
-- Raises: 22023, JQ001.
create or replace function jobq_private.graph_links(
    nodes jsonb, graph_id uuid,
    out names text[], out others uuid[], out arrows jobq_private.arrow[]
)
language plpgsql stable as $$
declare
    _missing text;
begin
    names := array(
        select e.node ->> 'name'
        from jsonb_array_elements(nodes) with ordinality as e (node, place)
        order by e.place
    );
    perform jobq_private.check_argument((
        select format('name %s is already in the graph', n.name)
        from jobq_private.node as n
        where n.graph_id = graph_links.graph_id and n.name = any(graph_links.names)
        limit 1
    ));
    with named as materialized (
        select e.place::integer as place, m.is_before, w.name
        from jsonb_array_elements(graph_links.nodes) with ordinality as e (node, place)
        cross join lateral (
            values (false, e.node -> 'after'), (true, e.node -> 'before')
        ) as m (is_before, names)
        cross join lateral jsonb_array_elements_text(
            coalesce(nullif(m.names, 'null'), '[]')
        ) as w (name)
    ),
    existing as materialized (
        select d.name, coalesce(n.job_id, case
            when d.name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then d.name::uuid
        end) as job_id
        from (
            select w.name from named as w
            except
            select n.name from unnest(graph_links.names) as n (name)
        ) as d
        left join jobq_private.node as n
            on n.graph_id = graph_links.graph_id and n.name = d.name
    ),
    place as materialized (
        select n.name, n.place::integer as place, null::uuid as job_id
        from unnest(graph_links.names) with ordinality as n (name, place)
        union all
        select
            x.name,
            cardinality(graph_links.names) + dense_rank() over (order by x.job_id)::integer,
            x.job_id
        from existing as x
    )
    select
        array(
            select distinct p.job_id from place as p where p.place > cardinality(names)
            order by p.job_id
        ),
        array(
            select distinct case
                when w.is_before then row(p.place, w.place)::jobq_private.arrow
                else row(w.place, p.place)::jobq_private.arrow
            end
            from named as w
            join place as p on p.name = w.name
        ),
        (select min(x.name) from existing as x where x.job_id is null)
    into others, arrows, _missing;
    perform jobq_private.check_problem('JOB_NOT_FOUND', (
        select coalesce(_missing, min(o.job_id::text))
            || ' is neither a job id nor a name in the graph'
        from unnest(others, jobq_private.ends_of(others)) as o (job_id, ended_as)
        where o.ended_as = 'gone'
    ));
end
$$;

-- Purpose: the jobs of a graph as passed, an array of objects with name, after and before.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.graph_nodes(graph jsonb)
returns jsonb language plpgsql stable as $$
declare
    _problem text;
    _nodes constant jsonb := graph -> 'jobs';
begin
    perform jobq_private.check_given('graph', num_nulls(graph));
    perform jobq_private.check_argument(case
        when jsonb_typeof(graph) <> 'object' or graph - 'jobs' <> '{}'
            or jsonb_typeof(_nodes) is distinct from 'array'
            or jsonb_array_length(_nodes) not between 1 and 100000
        then 'graph must be an object with jobs, an array of 1 to 100000'
    end);
    select format('job %s: %s', n.place, p.problem) into _problem
    from jsonb_array_elements(_nodes) with ordinality as n (node, place)
    cross join lateral (
        select case
            when jsonb_typeof(n.node) <> 'object' then 'must be an object'
            when jsonb_typeof(n.node -> 'name') is distinct from 'string'
                or length(n.node ->> 'name') not between 1 and 256
            then 'name must be a text of 1 to 256 characters'
            when jsonb_path_exists(n.node, 'strict $.keyvalue() ? (
                (@.key == "after" || @.key == "before") && @.value != null && (
                    @.value.type() != "array" || exists (@.value[*] ? (@.type() != "string"))))')
            then 'after and before must be arrays of names and ids'
        end as problem
    ) as p
    where p.problem is not null
    limit 1;
    _problem := coalesce(_problem, (
        select format('name %s is used twice', n.node ->> 'name')
        from jsonb_array_elements(_nodes) as n (node)
        group by n.node ->> 'name'
        having count(*) > 1
        limit 1
    ));
    perform jobq_private.check_argument(_problem);
    return _nodes;
end
$$;

-- Purpose: the rows of pending that only a login with more queues can decide: those of batches,
-- those of jobs that the login may not see, and those of callers with a job that it may not see.
-- Invariant: none for a login that sees all queues. Parents and children are not included; see
-- unsettled(). Reads only.
create or replace function jobq_private.hidden_pending(
    pending jobq_private.pending[], queues text[]
)
returns bigint[] language sql stable as $$
    select array(
        select l.pending_id
        from unnest(pending) as l
        where queues is not null and case
            when l.about in ('parent', 'child') then false
            when l.about = 'event' then not exists (
                select from jobq_private.job as j where j.job_id = l.id and j.queue = any(queues)
            )
            else l.about = 'batch' or exists (
                select from jobq_private.edge as c
                join jobq_private.edge as e on e.child = c.child
                where l.id = case l.about when 'call' then c.parent else c.child end
                and c.after_failure in ('call', 'detach') and e.after_failure in ('call', 'detach')
                and (
                    jobq_private.state_of(e.child) is null
                    or jobq_private.state_of(e.parent) is null
                )
            )
        end
    )
$$;

-- Purpose: lock the blocked jobs that will also wait for new ones, and return the paths from them
-- to the existing parents of new jobs, so that check_arrows() sees every cycle.
-- Invariant: in the order of ids; resolve() skips them until the commit, and then sees the new
-- parents. Concurrent calls that put new jobs between two blocked jobs could together create a
-- cycle, so these run one at a time until the commit. Raises: 22023, JQ002.
create or replace function jobq_private.hold_children(
    arrows jobq_private.arrow[], others uuid[], size integer
)
returns jobq_private.arrow[] language plpgsql as $$
declare
    _children constant uuid[] := array(
        select distinct others[a.child - size] from unnest(arrows) as a where a.child > size
    );
begin
    if exists (
        select from unnest(arrows) as a
        join jobq_private.job as j on j.job_id = others[a.parent - size]
        where a.parent > size and j.state = 'blocked'
    ) then
        perform jobq_private.check_argument(case
            when current_setting('transaction_isolation') in ('repeatable read', 'serializable')
            then 'before requires the isolation level read committed'
        end);
        perform pg_advisory_xact_lock(jobq_private.lock_class('joining'), 0);
    end if;
    perform from jobq_private.job as j
    where j.job_id = any(_children)
    order by j.job_id
    for no key update;
    perform jobq_private.check_problem('ILLEGAL_STATE', (
        select format(
            'job_id %s is %s; only a blocked job that no batch starts can wait for more jobs',
            c.job_id, jobq_private.state_of(c.job_id)
        )
        from unnest(_children) as c (job_id)
        where not exists (
            select from jobq_private.job as j where j.job_id = c.job_id and j.state = 'blocked'
        )
        or exists (
            select from jobq_private.batch as b
            where c.job_id in (b.on_success, b.on_end, b.on_first_death)
        )
        limit 1
    ));
    return array(
        select row(size + d.place, size + c.place)::jobq_private.arrow
        from unnest(others) with ordinality as c (job_id, place)
        cross join lateral jobq_private.tree(c.job_id, 'down') as t (job_id)
        join unnest(others) with ordinality as d (job_id, place) on d.job_id = t.job_id
        where c.job_id = any(_children) and d.place <> c.place
    );
end
$$;

-- Purpose: delete the steps, chunks of streams, waits, edges and names of deleted jobs,
-- and events and batches past retention.
-- Invariant: per call, at most max_rows events, waits, chunks and batches, and other rows of
-- max_rows jobs. Keeps events that a job waits for, and signals to jobs that can be redriven.
-- A login that does not see all queues deletes only waits. Returns the number of deleted rows.
create or replace function jobq_private.prune_workflows(max_rows integer)
returns bigint language sql set jit = off set enable_seqscan = off as $$
    with recursive past as materialized (
        select
            p.before, jobq_private.id_floor(p.before) as before_id,
            uuid '00000000-0000-0000-0000-000000000000' as no_job
        from (select now() - s.retention as before from jobq_private.setting as s) as p
        where jobq_private.worked_queues() is null
    ),
    events as (
        delete from jobq_private.event as e
        where e.ctid = any(array(
            select o.ctid
            from past as p join jobq_private.event as o on o.emitted_at < p.before
            where not exists (
                select from jobq_private.waiter as w
                where w.event = o.event and o.job_id in (w.job_id, p.no_job)
            )
            and (o.job_id = p.no_job or jobq_private.state_of(o.job_id) is null)
            order by o.emitted_at limit max_rows
        ))
        returning 1
    ),
    waiters as (
        delete from jobq_private.waiter as w
        where w.ctid = any(array(
            select o.ctid from jobq_private.waiter as o
            where o.since < now() - interval '1 day'
            and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
            order by o.since limit max_rows
        ))
        returning 1
    ),
    -- the jobs with rows here, one after the other, whatever the number of their rows
    old as (
        select p.no_job as job_id from past as p
        union all
        select least(
            (select s.job_id from jobq_private.step as s
            where s.job_id > o.job_id order by s.job_id limit 1),
            (select c.job_id from jobq_private.stream_chunk as c
            where c.job_id > o.job_id order by c.job_id limit 1),
            (select e.child from jobq_private.edge as e
            where e.child > o.job_id order by e.child limit 1),
            (select n.job_id from jobq_private.node as n
            where n.job_id > o.job_id order by n.job_id limit 1)
        )
        from past as p join old as o on o.job_id < p.before_id
    ),
    gone as materialized (
        select o.job_id
        from past as p join old as o on o.job_id < p.before_id and o.job_id <> p.no_job
        where jobq_private.state_of(o.job_id) is null
        limit max_rows
    ),
    chunks as (
        delete from jobq_private.stream_chunk as c
        where c.ctid = any(array(
            select o.ctid
            from gone as g join jobq_private.stream_chunk as o on o.job_id = g.job_id
            limit max_rows
        ))
        returning 1
    ),
    steps as (delete from jobq_private.step where job_id in (table gone) returning 1),
    edges as (delete from jobq_private.edge where child in (table gone) returning 1),
    nodes as (delete from jobq_private.node where job_id in (table gone) returning 1),
    batches as (
        delete from jobq_private.batch as b
        where b.ctid = any(array(
            select o.ctid
            from past as p join jobq_private.batch as o
                on o.opened_at < p.before and o.ended_at < p.before
            limit max_rows
        ))
        returning 1
    )
    select count(*)
    from (
        table events union all table chunks union all table steps union all table edges
        union all table nodes union all table waiters union all table batches
    ) as deleted
$$;

-- Purpose: the children of calls of several jobs, in order; refuse invalid ones.
-- Raises: 22004, 22023.
create or replace function jobq_private.read_calls(
    job_ids uuid[], attempts integer[], calls jsonb
)
returns jobq_private.child_call[] language plpgsql immutable as $$
declare
    _children jobq_private.child_call[];
begin
    perform jobq_private.check_attempts(job_ids, attempts);
    perform jobq_private.check_given('children', num_nulls(calls));
    perform jobq_private.check_argument(case
        when jsonb_typeof(calls) <> 'array' or jsonb_array_length(calls) <> cardinality(job_ids)
        then 'calls must be a JSON array with the length of job_ids'
        when jsonb_path_exists(
            calls, 'strict $[*] ? (@.type() != "array" || @.size() < 1 || @.size() > 1000)'
        ) or jsonb_path_exists(calls, 'strict $[*][*] ? (@.type() != "object")')
        then 'children must be a JSON array of 1 to 1000 objects'
    end);
    _children := array(
        select row(
            i.n, i.job_id, i.attempt, e.child ->> 'name', e.child, null, null
        )::jobq_private.child_call
        from rows from (unnest(job_ids, attempts), jsonb_array_elements(calls))
            with ordinality as i (job_id, attempt, children, n)
        cross join lateral jsonb_array_elements(i.children)
            with ordinality as e (child, place)
        order by i.n, e.place
    );
    if exists (
        select from unnest(_children) as c
        group by c.job_id, c.attempt, c.name
        having count(*) > 1
        or (length(c.name) between 1 and 256 and c.name not like 'event:%') is not true
    )
    or jsonb_path_exists(
        calls, 'lax $[*][*] ? (@.cancel.type() != "boolean" || @.name.type() != "string")'
    )
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'each child needs a name of its own of 1 to 256 characters that does not begin with event:, and cancel must be true or false'
        );
    end if;
    return _children;
end
$$;

-- Purpose: make jobs due that wait for the events of these rows of pending, and wake their
-- queues. The end of a called job is the event job_ended:ID. Returns the rows to postpone.
-- Invariant: waits for no lock. Skips jobs that run, retry or have ended: they look for their
-- events themselves. The rows of waiters stay until the jobs have looked, except those that
-- settle_calls() has settled. A login with some queues releases only their jobs.
create or replace function jobq_private.release_waiters(
    pending jobq_private.pending[], queues text[]
)
returns bigint[] language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _events constant jobq_private.pending[] := array(
        select row(
            l.pending_id, l.about, case l.about when 'call' then _all else l.id end,
            coalesce(l.event, 'job_ended:' || l.id), l.beyond, l.has_passed, l.created_at, l.due_at
        )::jobq_private.pending
        from unnest(pending) as l
        -- a wait with one snapshot notes called jobs that live, too
        where l.about = 'event' or l.about = 'call' and (
            select true from jobq_private.job as j where j.job_id = l.id limit 1
        ) is null
    );
    -- Transactions that emit, end a called job or begin to wait do not see each other's rows.
    -- Tests this before it reads the waiters, so that these include the rows of those that ended.
    _open constant bigint[] := array(
        select l.pending_id from unnest(_events) as l
        where jobq_private.is_locked('expecting', hashtext(l.event) & 1023)
        or case l.about
            when 'call' then l.created_at >= now()  -- this transaction has ended the job
            else jobq_private.is_locked('emitting', hashtext(l.event) & 1023)
        end
    );
    _waits jobq_private.waiter[];
    _held uuid[];
    _due uuid[];
begin
    if _events = '{}' then
        return '{}'::bigint[];
    end if;
    _waits := array(
        select w
        from unnest(_events) as l
        join jobq_private.waiter as w on w.event = l.event and l.id in (_all, w.job_id)
        -- by the index, whatever the statistics of tables say that have just been empty
        where w.event = any(array(select o.event from unnest(_events) as o))
        and (select j.state = 'queued' and j.run_at > clock_timestamp()
            from jobq_private.job as j where j.job_id = w.job_id)
        and (l.about = 'call' or exists (
            select from jobq_private.event as e
            where e.event = l.event and e.job_id in (l.id, _all)
        ))
    );
    _held := array(
        select j.job_id from jobq_private.job as j
        where j.job_id = any(array(select w.job_id from unnest(_waits) as w))
        and j.state = 'queued' and (queues is null or j.queue = any(queues))
        order by j.job_id
        for no key update skip locked
    );
    _due := array(
        select w.job_id
        from unnest(_waits) as w
        where not w.needs_all and w.job_id in (select h from unnest(_held) as h)
        union
        select s from unnest(jobq_private.settle_calls(array(
            select w.job_id from unnest(_waits) as w
            where w.needs_all and w.job_id in (select h from unnest(_held) as h)
        ))) as s
    );
    if _due <> '{}' then
        update jobq_private.job as j set run_at = least(j.run_at, clock_timestamp())
        where j.job_id = any(_due);
        perform jobq_private.announce_jobs(_due);
    end if;
    return array(
        select l.pending_id
        from unnest(_events) as l
        where l.event in (
            select w.event from unnest(_waits) as w
            where w.job_id not in (select h from unnest(_held) as h)
        )
        or l.pending_id = any(_open) and (l.about = 'event' or exists (
            select from jobq_private.edge as d
            where d.parent = jobq_private.ended_job(l.event)
            and d.after_failure in ('call', 'detach')
            and d.child not in (select h from unnest(_held) as h)
        ))
    );
end
$$;

-- Purpose: process ends of jobs and events: release or cancel children, end batches,
-- make jobs due that wait for an event or called jobs, cancel the children of cancelled jobs.
-- Invariant: waits for no lock. Runs three rounds, and more for up to 40 ms; the rest stays due.
-- Rows that are locked or not visible are postponed for 10 ms, later for up to a second. A row of
-- pending is deleted by the transaction that has processed it, so a killed session strands
-- nothing, and concurrent calls process it once. Returns the number of processed rows.
create or replace function jobq_private.resolve(max_rows integer default 1000)
returns bigint language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_mergejoin = off as $$
declare
    _queues constant text[] := jobq_private.worked_queues();
    _until constant timestamptz := clock_timestamp() + interval '40 ms';
    _pending jobq_private.pending[];
    _due bigint[];
    _put_off bigint[];
    _hidden bigint[];
    _done bigint := 0;
    _rounds integer := 0;
    _group record;
    _is_settled boolean;
begin
    -- A snapshot of the whole transaction is too old to show the remaining parents.
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    loop
        _pending := array(
            select l
            from jobq_private.pending as l
            where l.due_at <= clock_timestamp()
            order by l.pending_id
            limit resolve.max_rows
            for update skip locked
        );
        exit when _pending = '{}';
        select s.due, s.put_off into _due, _put_off
        from jobq_private.settle_edges(_pending, _queues) as s;
        _hidden := jobq_private.hidden_pending(_pending, _queues);
        _put_off := _put_off || _hidden || jobq_private.release_waiters(
            array(select l from unnest(_pending) as l where l.pending_id <> all(_hidden)), _queues
        );
        for _group in
            select l.about, l.id, array_agg(l.pending_id) as pending_ids, row_number() over () as n
            from unnest(_pending) as l
            where l.about in ('batch', 'caller') and l.pending_id <> all(_hidden)
            group by l.about, l.id
        loop
            if _group.n > 20 and clock_timestamp() > _until then
                _due := _due || _group.pending_ids;
                continue;
            elsif _group.about = 'caller' then
                _is_settled := jobq_private.cancel_children(_group.id);
            else
                _is_settled := jobq_private.settle_batch(_group.id);
            end if;
            if not _is_settled then
                _put_off := _put_off || _group.pending_ids;
            end if;
        end loop;
        update jobq_private.pending as l
        set beyond = default, has_passed = default, due_at = clock_timestamp() + least(
            greatest(clock_timestamp() - l.created_at, interval '10 ms'), interval '1 s'
        )
        where l.pending_id = any(_put_off);
        delete from jobq_private.pending as l
        where l.pending_id = any(array(
            select d.pending_id from unnest(_pending) as d
            except all
            select u from unnest(_due || _put_off) as u
        ));
        _done := _done + cardinality(_pending) - cardinality(_put_off);
        _rounds := _rounds + 1;
        exit when _rounds > 2 and clock_timestamp() > _until;
    end loop;
    return _done;
end
$$;

-- Purpose: queue the on_first_death job of a batch, and the jobs at its end.
-- Invariant: ends a batch under the lock of its row, which join_batches() shares, so no member is
-- being added. Returns whether nothing remains to be done until another member ends.
create or replace function jobq_private.settle_batch(batch_id uuid)
returns boolean language plpgsql as $$
declare
    _batch jobq_private.batch;
    _is_settled boolean := true;
    _is_over boolean;
    _has_dead boolean;
    _has_failed boolean;
begin
    -- Two transactions that end the last members do not see each other's changes. Only
    -- the holder of this lock may delete the row of pending; the lock does not block
    -- join_batches().
    select b.* into _batch
    from jobq_private.batch as b
    where b.batch_id = settle_batch.batch_id
    for no key update skip locked;
    if not found then
        return not exists (
            select from jobq_private.batch as b where b.batch_id = settle_batch.batch_id
        );
    elsif _batch.ended_at is not null and not exists (  -- none was redriven after the end
        select from jobq_private.job as c
        where c.job_id in (_batch.on_success, _batch.on_end, _batch.on_first_death)
        and c.state = 'blocked'
    ) then
        return true;
    end if;
    _is_over := _batch.sealed_at is not null and not exists (
        select from jobq_private.job as j where j.batch_id = _batch.batch_id
    );
    if _is_over then
        perform from jobq_private.batch as b
        where b.batch_id = _batch.batch_id
        for update skip locked;
        if not found then
            return false;
        end if;
        _is_over := not exists (  -- a member may have been added before the lock
            select from jobq_private.job as j where j.batch_id = _batch.batch_id
        );
    end if;
    _has_dead := _batch.on_first_death is not null and exists (
        select from jobq_private.job_archive as a
        where a.batch_id = _batch.batch_id and a.state = 'dead'
    );
    if _has_dead or _is_over then
        _is_settled := jobq_private.run_callback(
            _batch.on_first_death, case when _has_dead then 'queued' else 'cancelled' end,
            format('no job of batch %s is dead', _batch.batch_id)
        );
    end if;
    if _is_over then
        _has_failed := _batch.has_lost or exists (
            select from jobq_private.job_archive as a
            where a.batch_id = _batch.batch_id and a.state in ('dead', 'cancelled')
        );
        -- Tries each job, even if another one's row is locked.
        _is_settled := jobq_private.run_callback(
            _batch.on_success, case when _has_failed then 'cancelled' else 'queued' end,
            format('not all jobs of batch %s have succeeded', _batch.batch_id)
        ) and _is_settled;
        _is_settled := jobq_private.run_callback(_batch.on_end, 'queued') and _is_settled;
        update jobq_private.batch as b
        set ended_at = clock_timestamp()
        where b.batch_id = _batch.batch_id and b.ended_at is null;
    end if;
    return _is_settled;
end
$$;

-- Purpose: those of these jobs whose called jobs have all ended, with the ends saved as steps.
-- Invariant: the caller has locked the jobs, and looks for live children with a later snapshot.
-- So of two children that end together, the later transaction finds both. A child that the login
-- may not see may be live.
create or replace function jobq_private.settle_calls(job_ids uuid[])
returns uuid[] language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    _sees_all constant boolean := jobq_private.worked_queues() is null;
    -- From the last one: children mostly end in order, so a live one is found soon.
    _settled constant uuid[] := array(
        select i.job_id
        from unnest(settle_calls.job_ids) as i (job_id)
        where (
            select true
            from jobq_private.waiter as w
            where w.job_id = i.job_id and w.needs_all and (
                (
                    select true
                    from jobq_private.job as c
                    where c.job_id = jobq_private.ended_job(w.event)
                )
                or not _sees_all
                and jobq_private.state_of(jobq_private.ended_job(w.event)) is null
            )
            order by w.event desc
            limit 1
        ) is null
    );
begin
    with settled as (
        delete from jobq_private.waiter as w
        where w.job_id = any(_settled) and w.needs_all
        returning w.job_id, w.event
    )
    insert into jobq_private.step (job_id, name, value, attempt)
    select
        s.job_id, 'event:' || s.event,
        jsonb_build_object('outcome', 'arrived', 'payload', e.payload), j.attempt
    from settled as s
    join jobq_private.job as j on j.job_id = s.job_id
    cross join lateral (select jobq_private.ended_job(s.event) offset 0) as c (child_id)
    cross join lateral jobq_private.child_end(c.child_id) as e
    -- by the index, whatever the statistics say
    where j.job_id = any(_settled)
    on conflict on constraint step_pkey do nothing;
    return _settled;
end
$$;

-- Purpose: close the edges of parents that have ended, release children without open
-- edges, cancel those that can never run, and mark live parents as awaited.
-- Invariant: only a transaction that has locked a blocked child closes its edges, with a later
-- snapshot of the parents, and then checks for open edges. So exactly one transaction releases
-- it, after the last parent. At most 10 edges per row of pending and 1,000 more per call; a row
-- moves on over its edges, and begins again after the last one if it has passed some that must
-- wait. Returns the rows with more edges, and those to postpone.
create or replace function jobq_private.settle_edges(
    pending jobq_private.pending[], queues text[], out due bigint[], out put_off bigint[]
)
language plpgsql as $$
declare
    _most constant integer := 10 + 1000 / cardinality(pending);
    _edges jobq_private.pending_edge[];
    _held uuid[];
    _watched uuid[];
    _passed bigint[];
begin
    due := '{}';
    put_off := '{}';
    if not exists (select from unnest(pending) as l where l.about in ('parent', 'child')) then
        return;
    end if;
    _edges := array(
        select row(
            l.pending_id, l.about, e.child, e.parent, e.after_failure, null, null, null
        )::jobq_private.pending_edge
        from unnest(pending) as l
        cross join lateral (
            (
                select d.* from jobq_private.edge as d
                where l.about = 'parent' and d.parent = l.id and d.is_open and d.child > l.beyond
                order by d.child limit _most
            )
            union all
            (
                select d.* from jobq_private.edge as d
                where l.about = 'child' and d.child = l.id and d.is_open and d.parent > l.beyond
                order by d.parent limit _most
            )
        ) as e
    );
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(array(
            select e.child from unnest(_edges) as e
            union
            select l.id from unnest(pending) as l where l.about = 'child'
        ))
        and (j.state = 'blocked') is true and (queues is null or j.queue = any(queues))
        order by j.job_id
        for update skip locked
    );
    _watched := jobq_private.watch_parents(
        array(select e.parent from unnest(_edges) as e where e.about = 'child'), queues
    );
    _edges := jobq_private.end_edges(_edges, _held);
    perform jobq_private.close_edges(_edges, _held, queues);
    _passed := jobq_private.unsettled(pending, _edges, _held, _watched, queues);
    with moved_on as (
        update jobq_private.pending as l
        set
            beyond = n.id, has_passed = l.has_passed or l.pending_id = any(_passed),
            due_at = clock_timestamp()
        from (
            select e.pending_id, (array_agg(o.id order by o.id desc))[1] as id
            from unnest(_edges) as e
            cross join lateral (
                select case e.about when 'parent' then e.child else e.parent end as id
            ) as o
            group by e.pending_id
            having count(*) = _most
        ) as n
        where l.pending_id = n.pending_id
        returning l.pending_id
    )
    select coalesce(array_agg(m.pending_id), '{}') into due from moved_on as m;
    put_off := array(
        select l.pending_id
        from unnest(pending) as l
        where (l.has_passed or l.pending_id = any(_passed)) and l.pending_id <> all(due)
    );
end
$$;

-- Purpose: the result of a job's wait for the first of some events: the event that has
-- arrived, or a timeout; null while it waits.
-- Invariant: saves the result as a step, so that every later attempt gets the same. A signal to
-- the job has precedence over an event of that name. With one snapshot for the transaction, a
-- result that another session has saved since is invisible: fails to serialize. Raises: 40001.
create or replace function jobq_private.settle_wait(
    job_id uuid, attempt integer, name text, events text[]
)
returns jsonb language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _end jsonb;
begin
    select
        jsonb_build_object('outcome', 'arrived', 'payload', a.payload)
        || case when w.event = settle_wait.name then '{}' else jsonb_build_object('event', w.event) end
    into _end
    from unnest(events) as w (event)
    cross join lateral (
        (
            select e.payload, e.emitted_at as arrived_at
            from jobq_private.event as e
            where e.event = w.event and e.job_id in (settle_wait.job_id, _all)
            order by e.job_id = _all
            limit 1
        )
        union all
        select c.payload, c.finished_at
        from (select jobq_private.ended_job(w.event) offset 0) as i (child_id)
        cross join lateral jobq_private.child_end(i.child_id) as c
        where starts_with(w.event, 'job_ended:')
    ) as a
    order by a.arrived_at, w.event
    limit 1;
    if not found then
        select jsonb_build_object('outcome', 'timed_out', 'payload', null) into _end
        from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id
        and w.event = any(events)
        and w.deadline <= clock_timestamp()
        limit 1;
    end if;
    if _end is not null then
        insert into jobq_private.step (job_id, name, value, attempt)
        values (settle_wait.job_id, 'event:' || settle_wait.name, _end, settle_wait.attempt)
        on conflict on constraint step_pkey do nothing;
        delete from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id and w.event = any(events);
    end if;
    return _end;
end
$$;

-- Purpose: enqueue the jobs that others call, unless they were called before, and return all
-- with their ids; those of attempts that have lost their leases are left out.
-- Invariant: as start_children(). Callers are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
-- Never: BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT, JOB_NOT_FOUND, ILLEGAL_STATE.
create or replace function jobq_private.start_calls(
    job_ids uuid[], attempts integer[], calls jsonb
)
returns jobq_private.child_call[] language plpgsql set plan_cache_mode = force_generic_plan
set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    _children jobq_private.child_call[] := jobq_private.read_calls(job_ids, attempts, calls);
    _new jsonb;
    _ids uuid[];
    _jobs jobq_private.new_job[];
begin
    perform from jobq_private.job as j
    where j.job_id = any(job_ids) and j.lease_expires_at is not null
    order by j.job_id
    for no key update;
    _children := array(
        select row(
            c.n, c.job_id, c.attempt, c.name, c.document,
            case
                when s.name is null then jobq_private.new_id(g.shard_id)
                else jobq_private.ended_job('job_ended:' || (s.value #>> '{}'))
            end,
            s.name is null
        )::jobq_private.child_call
        from unnest(_children) with ordinality
            as c (n, job_id, attempt, name, document, child_id, is_new, place)
        join jobq_private.job as j
            on j.job_id = c.job_id and j.attempt = c.attempt and j.lease_expires_at is not null
        left join jobq_private.step as s on s.job_id = c.job_id and s.name = c.name
        cross join jobq_private.setting as g
        -- by the index, whatever the statistics say
        where j.job_id = any(job_ids)
        order by c.place
    );
    perform jobq_private.check_argument((
        select format('children: the name %s is taken by a step', to_jsonb(c.name))
        from unnest(_children) as c
        where c.child_id is null
        limit 1
    ));
    select
        jsonb_agg(c.document - '{name,cancel}'::text[] order by c.place),
        array_agg(c.child_id order by c.place)
    into _new, _ids
    from unnest(_children) with ordinality
        as c (n, job_id, attempt, name, document, child_id, is_new, place)
    where c.is_new;
    if _new is null then
        return _children;
    end if;
    _jobs := jobq_private.read_records(
        null::jobq_private.new_job, 'jobs', _new,
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,expires_at,cost}'
    );
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].job_id := _ids[_n];
        _jobs[_n].is_awaited := true;
        _jobs[_n].dedup := 'enqueue';
    end loop;
    perform jobq_private.store_jobs(_jobs);
    insert into jobq_private.step (job_id, name, value, attempt)
    select c.job_id, c.name, to_jsonb(c.child_id), c.attempt
    from unnest(_children) as c
    where c.is_new;
    insert into jobq_private.edge (child, parent, after_failure, is_open)
    select
        c.job_id, c.child_id,
        case when c.document @> '{"cancel": false}' then 'detach' else 'call' end, false
    from unnest(_children) as c
    where c.is_new;
    return _children;
end
$$;

-- Purpose: store an event, and release the jobs that wait for it.
-- Invariant: the first one is kept; returns true only for it. Waits for no lock of
-- another transaction except that of the event's own row.
create or replace function jobq_private.store_event(event text, job_id uuid, payload jsonb)
returns boolean language plpgsql as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _put_off bigint[];
begin
    -- An emit and a wait in two open transactions do not see each other's rows. Each
    -- takes a lock of its own class, shared until its commit, before it tests the other
    -- class. So one of them sees the other, and adds a row for resolve().
    perform pg_advisory_xact_lock_shared(
        jobq_private.lock_class('emitting'), hashtext(store_event.event) & 1023
    );
    insert into jobq_private.event (event, job_id, payload)
    values (store_event.event, store_event.job_id, store_event.payload)
    on conflict on constraint event_pkey do nothing;
    if not found then
        return false;
    end if;
    _put_off := jobq_private.release_waiters(
        array[row(
            0, 'event', store_event.job_id, store_event.event, null, false, null, null
        )::jobq_private.pending],
        jobq_private.worked_queues()
    );
    if _put_off <> '{}' or current_setting('transaction_isolation') <> 'read committed' then
        insert into jobq_private.pending (about, id, event)
        values ('event', store_event.job_id, store_event.event);
        -- Those that work the queues of the jobs that it has not released must look.
        perform jobq_private.wake(array(
            select distinct j.queue
            from jobq_private.waiter as w
            join jobq_private.job as j on j.job_id = w.job_id
            where w.event = store_event.event and store_event.job_id in (w.job_id, _all)
        ));
    end if;
    return true;
end
$$;

-- Purpose: store the jobs of a graph with their edges, and return their ids.
-- Invariant: the edges were checked. The jobs of a schedule's graph, whose only existing
-- parent is the schedule's job, have that job's slot.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010. Never: DEDUP_CONFLICT.
create or replace function jobq_private.store_nodes(
    nodes jsonb, names text[], others uuid[], arrows jobq_private.arrow[], graph_id uuid,
    is_checked boolean
)
returns uuid[] language plpgsql as $$
declare
    _size constant integer := cardinality(names);
    _ids constant uuid[] := array(
        select jobq_private.new_id(g.shard_id)
        from unnest(names) cross join jobq_private.setting as g
    );
    _all constant uuid[] := _ids || others;
    _slot_at constant timestamptz := (
        select j.slot_at
        from jobq_private.job as j
        where store_nodes.is_checked and j.job_id = others[1]
    );
    _jobs jobq_private.new_job[] := jobq_private.node_jobs(nodes);
    _node record;
    _named integer;
begin
    for _node in
        select
            p.place, array_agg(_all[a.parent]) filter (where a.child = p.place) as after,
            bool_or(a.parent = p.place) as is_awaited
        from unnest(arrows) as a
        cross join lateral (values (a.child), (a.parent)) as p (place)
        where p.place <= _size
        group by p.place
    loop
        _jobs[_node.place].after := _node.after;
        _jobs[_node.place].is_awaited := _node.is_awaited;
    end loop;
    for _n in 1 .. _size loop
        _jobs[_n].job_id := _ids[_n];
        _jobs[_n].slot_at := _slot_at;
        _jobs[_n].dedup := 'enqueue';
    end loop;
    perform jobq_private.store_jobs(_jobs, is_checked);
    insert into jobq_private.node (job_id, graph_id, name)
    select n.job_id, store_nodes.graph_id, n.name
    from unnest(_ids, names) as n (job_id, name)
    order by n.name
    on conflict on constraint node_name_key do nothing;
    get diagnostics _named = row_count;
    perform jobq_private.check_argument(case when _named < _size
        then 'a name is already in the graph: another job has just added it' end);
    insert into jobq_private.edge (child, parent, after_failure)
    select _all[a.child], _all[a.parent], coalesce((
        select min(e.after_failure) from jobq_private.edge as e where e.child = _all[a.child]
    ), 'cancel')
    from unnest(arrows) as a
    where a.child > _size;
    return _ids;
end
$$;

-- Purpose: wait_for() and wait_any(): the result of a job's wait for the first of some events,
-- recorded under a name; null if the job was returned to its queue until one comes.
-- Invariant: as wait_for(). Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
create or replace function jobq_private.wait_events(
    job_id uuid, attempt integer, name text, events text[], timeout interval
)
returns jsonb language plpgsql set jit = off set enable_seqscan = off as $$
declare
    _events constant text[] := array(select distinct e from unnest(events) as e);
    _end jsonb;
    _due timestamptz;
begin
    perform jobq_private.check_argument(case
        when (array_ndims(events) = 1 and cardinality(events) <= 100) is not true
        then 'events must be 1 to 100'
        when wait_events.timeout not between '0' and '36500 days'
        then 'timeout must be between 0 and 36500 days'
    end);
    perform jobq_private.check_event(e, 'null') from unnest(name || events) as e;
    perform jobq_private.lock_attempt(wait_events.job_id, wait_events.attempt);

    select s.value into _end
    from jobq_private.step as s
    where s.job_id = wait_events.job_id and s.name = 'event:' || wait_events.name;
    if found then
        return _end;
    end if;
    perform jobq_private.check_argument((
        select 'job_ended: needs the id of a job that this one has called'
        from unnest(_events) as e
        where starts_with(e, 'job_ended:') and not exists (
            select from jobq_private.edge as d
            where d.child = wait_events.job_id
            and d.parent = jobq_private.ended_job(e)
            and d.after_failure in ('call', 'detach')
        )
        limit 1
    ));
    -- As in store_event(): an emit takes a lock of its own class, and one of the two sees
    -- the other.
    perform pg_advisory_xact_lock_shared(jobq_private.lock_class('expecting'), s.slot)
    from (select distinct hashtext(e) & 1023 as slot from unnest(_events) as e order by 1) as s;
    with stored as (
        insert into jobq_private.waiter as w (job_id, event, deadline)
        select
            wait_events.job_id, e,
            clock_timestamp() + coalesce(wait_events.timeout, interval '36500 days')
        from unnest(_events) as e
        on conflict on constraint waiter_pkey do update set event = w.event
        returning w.deadline
    )
    select min(s.deadline) into _due from stored as s;
    insert into jobq_private.pending (about, id, event)
    select
        case when c.job_id is null then 'event' else 'call' end,
        coalesce(c.job_id, wait_events.job_id), case when c.job_id is null then e end
    from unnest(_events) as e
    cross join lateral (select jobq_private.ended_job(e)) as c (job_id)
    where jobq_private.is_locked('emitting', hashtext(e) & 1023)
    or current_setting('transaction_isolation') <> 'read committed'
    -- one that the login may not see may have ended
    or c.job_id is not null and jobq_private.worked_queues() is not null
    and jobq_private.state_of(c.job_id) is null;
    _end := jobq_private.settle_wait(job_id, attempt, name, _events);
    if _end is null then
        perform jobq.release(wait_events.job_id, wait_events.attempt, _due);
    end if;
    return _end;
end
$$;

-- Purpose: mark live parents as awaited, and return those whose ends will add rows to pending:
-- all but those that another transaction holds.
-- Invariant: the end of a parent adds a row only if the parent was marked, and the edge
-- committed, before its end locked the row. So the marked ones are locked until the commit.
create or replace function jobq_private.watch_parents(parents uuid[], queues text[])
returns uuid[] language plpgsql as $$
begin
    update jobq_private.job as j set is_awaited = true
    where j.ctid = any(array(
        select p.ctid
        from jobq_private.job as p
        where p.job_id = any(parents)
        and not p.is_awaited and (queues is null or p.queue = any(queues))
        for no key update skip locked
    ));
    return array(
        select p.job_id
        from jobq_private.job as p
        where p.job_id = any(parents)
        and p.is_awaited and (queues is null or p.queue = any(queues))
        for key share skip locked
    );
end
$$;

-- Purpose: Answers the question of a job that waits for a person: approves or rejects.
-- Invariant: the first answer counts; a later one is refused. Part of the caller's transaction,
-- with an audit row. While the job's row is locked, neither another answer nor the end of the
-- waiting time is recorded. Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name of the question
-- Argument is_approved: true approves, false rejects
-- Argument data: the data of the answer: any JSON up to max_payload_bytes. That of an
-- approval must match the form of the question.
-- Argument answered_by: the person in whose name the caller answers, 1 to 256
-- characters; null means the caller
-- Example: select jobq.answer(:'asking', 'refund', true, reason => 'a regular customer', answered_by => 'ada');
create or replace function jobq.answer(
    job_id uuid, name text, is_approved boolean, data jsonb default 'null',
    reason text default null, answered_by text default null
)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _event constant text := 'answer:' || answer.name;
    _caller constant text := nullif(current_setting('jobq.acting_for', true), '');
    _acting_for constant text := left(concat_ws(' for ', _caller, answer.answered_by), 256);
    _payload constant jsonb := jsonb_build_object(
        'is_approved', answer.is_approved, 'data', answer.data, 'reason', answer.reason,
        'by', coalesce(nullif(_acting_for, ''), session_user)
    );
    _form jsonb;
begin
    perform jobq_private.check_given('name, is_approved and data', num_nulls(
        answer.name, answer.is_approved, answer.data
    ));
    perform jobq_private.check_argument(case
        when length(answer.name) not between 1 and 249 then 'name must have 1 to 249 characters'
        when length(answer.reason) > 512 then 'reason must have at most 512 characters'
        when length(answer.answered_by) not between 1 and 256
        then 'answered_by must have 1 to 256 characters'
    end);
    perform jobq.get_job(answer.job_id);
    perform jobq_private.check_event(_event, _payload);

    perform from jobq_private.job as j where j.job_id = answer.job_id for no key update;
    select q.form into _form
    from jobq.question as q
    where q.job_id = answer.job_id and q.name = answer.name;
    if not found then
        perform jobq_private.refuse_answer(answer.job_id, answer.name);
    elsif answer.is_approved then
        perform jobq_private.check_problem(
            'PAYLOAD_INVALID', format('the data do not match the form of question %s: ', answer.name)
                || jobq_private.schema_violation(_form, answer.data, 'data')
        );
    end if;
    perform jobq_private.store_event(_event, answer.job_id, _payload);
    insert into jobq_private.audit (action, subject, reason, acting_for)
    values (
        case when answer.is_approved then 'approve' else 'reject' end,
        answer.job_id::text, left(concat_ws(': ', answer.name, answer.reason), 512),
        nullif(_acting_for, '')
    );
end
$$;
grant execute on function jobq.answer to jobq_producer, jobq_operator;

comment on function jobq.answer is 'Answers the question of a job that waits for a person: approves or rejects.';

-- Purpose: Adds chunks to a stream of a running job, for those who follow it, and returns
-- the cursor of the last one.
-- Invariant: only the attempt that holds the job can append, under the lock of its row. Its
-- chunks are a generation of their own, numbered from 1. With first, a repeated call adds nothing
-- twice. Chunks are kept as long as the job. Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006.
-- Argument chunks: a JSON array of 1 to 1000 chunks, each any JSON up to max_payload_bytes
-- Argument first: the number of the first chunk in this generation; null means after the last one
-- Returns: the cursor of the last chunk
-- Example: select jobq.append(:'running', 1, 'tokens', '["Hello", " world"]');
create or replace function jobq.append(
    job_id uuid, attempt integer, stream text, chunks jsonb, first integer default null
)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _size constant integer := case jsonb_typeof(append.chunks)
        when 'array' then jsonb_array_length(append.chunks)
    end;
    _first integer := append.first;
begin
    perform jobq_private.check_given(
        'stream and chunks', num_nulls(append.stream, append.chunks)
    );
    perform jobq_private.check_argument(case when (_size between 1 and 1000) is not true
        then 'chunks must be a JSON array of 1 to 1000 chunks' end);
    perform jobq_private.lock_attempt(append.job_id, append.attempt);
    if _first is null then
        _first := 1 + coalesce((
            select c.n
            from jobq_private.stream_chunk as c
            where c.job_id = append.job_id
            and c.stream = append.stream
            and c.generation = append.attempt
            order by c.n desc
            limit 1
        ), 0);
    end if;
    perform jobq_private.check_argument(case when _first > 1000000000 - _size
        then 'a stream has at most 999999999 chunks in a generation' end);
    perform jobq_internal.append_many(
        array_fill(append.job_id, array[_size]), array_fill(append.attempt, array[_size]),
        array_fill(append.stream, array[_size]),
        array(select n from generate_series(_first, _first + _size - 1) as n), append.chunks
    );
    return format('%s-%s', append.attempt, _first + _size - 1);
end
$$;
grant execute on function jobq.append to jobq_worker;

comment on function jobq.append is 'Adds chunks to a stream of a running job, for those who follow it, and returns the cursor of the last one.';

-- Purpose: Asks a person a question and waits for the answer: returns it, or that the
-- job was returned to its queue until somebody answers.
-- Invariant: as wait_for(), for an answer() to the question. Only answer() can answer it: events
-- and signals cannot have the name of an answer. While the job waits, a later call replaces
-- question and form. Raises: 22004, 22023, JQ001, JQ003, JQ006.
-- Argument name: the name of the question, unique within the job, 1 to 249 characters
-- Argument question: what the person reads, 1 to 4096 characters
-- Argument form: a JSON Schema of the data that an approval must have; null means any
-- Argument timeout: maximum waiting time from the first call; up to 36500 days, the default
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: the answer, a JSON object: is_approved, data, reason, by
-- Example: select * from jobq.ask(:'running', 1, 'refund', 'Refund 5 euro?', timeout => '3 days');
create or replace function jobq.ask(
    job_id uuid, attempt integer, name text, question text, form jsonb default null,
    timeout interval default null, out outcome text, out payload jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off as $$
declare
    _event constant text := 'answer:' || ask.name;
    _worker constant text := (
        select j.worker from jobq_private.job as j where j.job_id = ask.job_id
    );
begin
    perform jobq_private.check_given('name and question', num_nulls(ask.name, ask.question));
    perform jobq_private.check_argument(case
        when length(ask.name) not between 1 and 249 then 'name must have 1 to 249 characters'
        when length(ask.question) not between 1 and 4096
        then 'question must have 1 to 4096 characters'
    end);
    perform jobq_private.check_problem('SCHEMA_INVALID', coalesce(
        jobq_private.schema_problem(ask.form, 'form'),
        case when length(ask.form::text) > 65536
            then 'form must have at most 65536 characters' end
    ));
    select w.outcome, w.payload into outcome, payload
    from jobq.wait_for(ask.job_id, ask.attempt, _event, ask.timeout) as w;
    if outcome = 'waiting' then
        update jobq_private.waiter as w
        set question = ask.question, form = ask.form, asked_by = coalesce(_worker, session_user)
        where w.job_id = ask.job_id and w.event = _event;
    end if;
end
$$;
grant execute on function jobq.ask to jobq_worker;

comment on function jobq.ask is 'Asks a person a question and waits for the answer: returns it, or that the job was returned to its queue until somebody answers.';

-- Purpose: Calls jobs for many running jobs, and returns for each whether all jobs of its call
-- have ended, or that it was returned to its queue until then.
-- Invariant: as call_children(). All or none; rows are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
-- Argument calls: a JSON array parallel to job_ids: the children of each, as of start_children()
-- Column outcome: `arrived`, `waiting`, or `lost` if the attempt has lost its lease
-- Column ends: as of call_children()
-- Example: select outcome from jobq_internal.call_many(array[:'running']::uuid[], '{1}', '[[{"name": "search", "kind": "send_email", "payload": {"to": "a@b.c"}}]]');
create or replace function jobq_internal.call_many(
    job_ids uuid[], attempts integer[], calls jsonb
)
returns table (job_id uuid, attempt integer, outcome text, ends jsonb) language plpgsql
security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    _until constant timestamptz := clock_timestamp() + interval '36500 days';
    _children jobq_private.child_call[] := jobq_private.start_calls(
        call_many.job_ids, call_many.attempts, call_many.calls
    );
    _known uuid[] := array(select c.child_id from unnest(_children) as c where not c.is_new);
    _waiting uuid[];
begin
    with stored as (
        insert into jobq_private.waiter as w (job_id, event, deadline, needs_all)
        select c.job_id, 'job_ended:' || c.child_id, _until, true
        from unnest(_children) as c
        where c.is_new or (  -- no join, which could read all steps by a plan of an empty table
            select true from jobq_private.step as s
            where s.job_id = c.job_id and s.name = 'event:job_ended:' || c.child_id
            limit 1
        ) is null
        on conflict on constraint waiter_pkey do update set needs_all = true
        returning w.job_id
    )
    select coalesce(array_agg(distinct s.job_id), '{}') into _waiting from stored as s;
    if _known <> '{}' then
        -- As in wait_events(): of this transaction and that of an end, one sees the other.
        perform pg_advisory_xact_lock_shared(jobq_private.lock_class('expecting'), s.slot)
        from (
            select distinct hashtext('job_ended:' || k) & 1023 as slot
            from unnest(_known) as k order by 1
        ) as s;
        insert into jobq_private.pending (about, id)
        select 'call', k
        from unnest(_known) as k
        where current_setting('transaction_isolation') <> 'read committed'
        -- one that the login may not see may have ended
        or jobq_private.worked_queues() is not null and jobq_private.state_of(k) is null;
        _waiting := array(
            select w from unnest(_waiting) as w
            except
            select s from unnest(jobq_private.settle_calls(_waiting)) as s
        );
    end if;
    -- as release_many(); is_awaited, so that its end is followed: see on_end()
    update jobq_private.job as j
    set
        state = case when j.cancel_requested_at is null then 'queued' else 'cancelled' end,
        run_at = _until, is_awaited = true
    where j.job_id = any(_waiting);
    return query
    select
        a.job_id, a.attempt, a.outcome, case when a.outcome = 'arrived' then a.ends end
    from (
        select
            c.n, c.job_id, c.attempt,
            case when w.is_waiting then 'waiting' else 'arrived' end as outcome,
            jsonb_agg(s.value -> 'payload' order by c.place) as ends
        from unnest(_children) with ordinality
            as c (n, job_id, attempt, name, document, child_id, is_new, place)
        cross join lateral (
            select c.job_id in (select u from unnest(_waiting) as u) offset 0
        ) as w (is_waiting)
        left join jobq_private.step as s
            on s.job_id = c.job_id
            and s.name = 'event:job_ended:' || c.child_id
            and not w.is_waiting
        group by c.n, c.job_id, c.attempt, w.is_waiting
        union all
        select i.n, i.job_id, i.attempt, 'lost', null
        from unnest(call_many.job_ids, call_many.attempts)
            with ordinality as i (job_id, attempt, n)
        where i.n not in (select c.n from unnest(_children) as c)
    ) as a
    order by a.n;
end
$$;
grant execute on function jobq_internal.call_many to jobq_worker;

comment on function jobq_internal.call_many is 'Calls jobs for many running jobs, and returns for each whether all jobs of its call have ended, or that it was returned to its queue until then.';

-- Purpose: Seals a batch and cancels its members, and returns how many were cancelled,
-- were asked to stop, and remain.
-- Invariant: cancels at most max_jobs waiting members per call, oldest first; repeat the call
-- while some remain. Skips rows that another transaction has locked. Raises: 22004, 22023, JQ001.
-- Argument batch_id: the batch
-- Argument max_jobs: maximum number, 1 to 100000.
-- Column cancelled: how many were cancelled
-- Column requested: how many run, and were asked to stop
-- Column remaining: how many are left, neither cancelled nor asked
-- Example: select * from jobq.cancel_batch(:'batch', 'wrong list');
create or replace function jobq.cancel_batch(
    batch_id uuid, reason text default null, max_jobs integer default 10000, out cancelled bigint,
    out requested bigint, out remaining bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _held uuid[];
begin
    perform jobq_private.find_batch(cancel_batch.batch_id);
    perform jobq_private.check_count('max_jobs', cancel_batch.max_jobs, 1, 100000);
    perform jobq_private.check_argument(case when length(cancel_batch.reason) > 512
        then 'reason must have at most 512 characters' end);
    perform jobq.seal_batch(cancel_batch.batch_id);
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.batch_id = cancel_batch.batch_id and j.cancel_requested_at is null
        order by j.job_id
        limit cancel_batch.max_jobs
        for update skip locked
    );
    select
        count(*) filter (where c.outcome = 'cancelled'),
        count(*) filter (where c.outcome = 'cancel_requested')
    into cancelled, requested
    from jobq_private.cancel_jobs(_held, cancel_batch.reason) as c;
    select count(*) into remaining
    from jobq_private.job as j
    where j.batch_id = cancel_batch.batch_id and j.cancel_requested_at is null;
end
$$;
grant execute on function jobq.cancel_batch to jobq_producer, jobq_operator;

comment on function jobq.cancel_batch is 'Seals a batch and cancels its members, and returns how many were cancelled, were asked to stop, and remain.';

-- Purpose: Cancels a job and all connected jobs, and returns them.
-- Invariant: each as by cancel(), in one transaction. Locks all rows first, in the
-- order of ids, so that none of them ends meanwhile. Does not change finished jobs.
-- Raises: 22004, 22023, JQ001.
-- Argument job_id: any job of the tree
-- Argument scope: all (all connected jobs) or downstream (the job and those that wait for it)
-- Column cancelled_id: the id of a job that was live
-- Column outcome: cancelled or cancel_requested.
-- Example: select * from jobq.cancel_tree(:'waiting', 'ordered twice');
create or replace function jobq.cancel_tree(
    job_id uuid, reason text default null, scope text default 'all'
)
returns table (cancelled_id uuid, outcome text) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    _held uuid[];
begin
    perform jobq.get_job(cancel_tree.job_id);
    perform jobq_private.check_argument(case
        when (cancel_tree.scope in ('all', 'downstream')) is not true
        then 'scope must be all or downstream'
        when length(cancel_tree.reason) > 512 then 'reason must have at most 512 characters'
    end);
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id in (
            select d.job_id
            from jobq_private.tree(
                cancel_tree.job_id, case cancel_tree.scope when 'all' then 'all' else 'down' end
            ) as d (job_id)
        )
        order by j.job_id
        for update
    );
    return query
    select c.job_id, c.outcome from jobq_private.cancel_jobs(_held, cancel_tree.reason) as c;
end
$$;
grant execute on function jobq.cancel_tree to jobq_producer, jobq_operator;

comment on function jobq.cancel_tree is 'Cancels a job and all connected jobs, and returns them.';

-- Purpose: Emits an event for all jobs that wait for it now or later; returns true for
-- the first emit.
-- Invariant: part of the caller's transaction. The first emit of an event is kept: returns true
-- for it, false for later ones. An event is kept as long as finished jobs, and longer while a job
-- waits for it. While grants by queue are enforced, requires grants for all queues, because jobs
-- of any queue may wait. Raises: 22004, 22023, 42501, JQ005, JQ006.
-- Argument payload: the payload for the waiting jobs: any JSON up to max_payload_bytes
-- Returns: true for the first emit of the event
-- Example: select jobq.emit('payment:42', '{"euro": 5}');
create or replace function jobq.emit(event text, payload jsonb default 'null')
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_event(emit.event, emit.payload);
    perform jobq_private.check_argument(case
        when emit.event ~ '^(answer|message|job_ended):'
        then 'event must not begin with ''answer:'', ''message:'' or ''job_ended:'''
    end);
    if row_security_active('jobq_private.event') and not exists (
        select from jobq_private.held_queue as h where h.any_of && array['*']
    ) then
        perform jobq_private.raise_error(
            'ALL_QUEUES_NEEDED', format('event %s', left(emit.event, 64))
        );
    end if;
    return jobq_private.store_event(
        emit.event, '00000000-0000-0000-0000-000000000000', emit.payload
    );
end
$$;
grant execute on function jobq.emit to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.emit is 'Emits an event for all jobs that wait for it now or later; returns true for the first emit.';

-- Purpose: Enqueues a copy of a job that takes over the steps recorded before one of them,
-- and returns its id.
-- Invariant: the copy is as that of rerun(), with fork_of in its metadata; the job stays as
-- it is, and can be live. What it has called before the step is not called again. Streams,
-- and messages and signals that it has not received, are not copied.
-- Raises: 22004, 22023, JQ001, JQ005, JQ006, JQ010.
-- Never: BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT.
-- Argument from_step: the first step that the copy runs again, as list_steps() names it; null
-- takes over all
-- Returns: the id of the new job.
-- Example: select jobq.fork(:'running');
create or replace function jobq.fork(job_id uuid, from_step text default null)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job constant jobq.job := jobq.get_job(fork.job_id);
    _from timestamptz := timestamptz 'infinity';
    _copy_id uuid;
begin
    if fork.from_step is not null then
        _from := (
            select s.saved_at from jobq_private.step as s
            where s.job_id = _job.job_id and s.name = fork.from_step
        );
        perform jobq_private.check_argument(case when _from is null
            then format('from_step must be a recorded step of job_id %s', _job.job_id) end);
    end if;
    _copy_id := (jobq_private.store_jobs(array[
        jobq_private.copy_of(_job, jsonb_build_object('fork_of', _job.job_id))
    ])).ids[1];
    -- sleeps and messages have the job's id in their names
    with copied as (
        insert into jobq_private.step (job_id, name, value, attempt, saved_at)
        select
            _copy_id, replace(s.name, _job.job_id::text, _copy_id::text),
            case
                when s.name like 'event:%' and s.value ? 'event' then jsonb_set(
                    s.value, '{event}',
                    to_jsonb(replace(s.value ->> 'event', _job.job_id::text, _copy_id::text))
                )
                else s.value
            end,
            s.attempt, s.saved_at
        from jobq_private.step as s
        where s.job_id = _job.job_id
        and (s.saved_at, s.name) < (_from, coalesce(fork.from_step, ''))
        returning name, value
    )
    -- the messages that were received, so that the next one gets the next number
    insert into jobq_private.event (event, job_id, payload)
    select e.event, _copy_id, c.value -> 'payload'
    from copied as c
    cross join lateral (select coalesce(c.value ->> 'event', substr(c.name, 7)) as event) as e
    where c.name like 'event:%' and c.value @> '{"outcome": "arrived"}'
    and starts_with(e.event, format('message:%s:', _copy_id))
    on conflict on constraint event_pkey do nothing;
    insert into jobq_private.edge (child, parent, after_failure, is_open)
    select _copy_id, e.parent, 'detach', false
    from jobq_private.edge as e
    where e.child = _job.job_id and e.after_failure in ('call', 'detach');
    perform jobq_private.record_audit('fork', _job.job_id::text, fork.from_step);
    return _copy_id;
end
$$;
grant execute on function jobq.fork to jobq_operator;

comment on function jobq.fork is 'Enqueues a copy of a job that takes over the steps recorded before one of them, and returns its id.';

-- Purpose: Lists the questions of jobs that wait for a person, the oldest first.
-- Invariant: reads only, by an index of the open questions. Raises: 22004, 22023.
-- Argument queue: only questions of this queue; null means all
-- Argument job_id: only questions of this job; null means all
-- Argument max_rows: maximum number, 1 to 1000
-- Argument since: only questions asked at or after this time, such as that of the last row of a
-- full page; null means all
-- Argument from_job: of those asked at `since`, only those of this job, such as that of the last
-- row, and of later ids; null means all
-- Returns: rows of jobq.question
-- Example: select name, question from jobq.list_waits();
create or replace function jobq.list_waits(
    queue text default null, job_id uuid default null, max_rows integer default 100,
    since timestamptz default null, from_job uuid default null
)
returns setof jobq.question language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    perform jobq_private.check_count('max_rows', list_waits.max_rows, 1, 1000);
    return query
    select q.*
    from jobq.question as q
    where (list_waits.queue is null or q.queue = list_waits.queue)
    and (list_waits.job_id is null or q.job_id = list_waits.job_id)
    and (list_waits.since is null or q.since >= list_waits.since)
    and (q.since = list_waits.since and q.job_id < list_waits.from_job) is not true
    order by q.since, q.job_id, q.name
    limit list_waits.max_rows;
end
$$;
grant execute on function jobq.list_waits to jobq_operator, jobq_reader;

comment on function jobq.list_waits is 'Lists the questions of jobs that wait for a person, the oldest first.';

-- Purpose: Creates a batch, with the jobs to run when it has succeeded, has ended, or
-- has its first dead member; returns its id.
-- Invariant: the batch ends when it is sealed and no member is live. These jobs are
-- blocked until then, and have the batch as batch_id in their metadata. They must have
-- no keys, because they must be new; a dedup key that their kind declares is ignored.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010. Never: DEDUP_CONFLICT.
-- Argument on_success: a job as for enqueue_many() except keys, expires_at, after and
-- after_failure, to run when all members have succeeded; cancelled when one has not.
-- Argument on_end: a job to run when all members have ended, with any outcome.
-- Argument on_first_death: a job to run as soon as a member is dead; cancelled if none dies.
-- Returns: the batch, for enqueue(batch_id => …).
-- Example: select jobq.open_batch(on_success => '{"kind": "report"}', on_first_death => '{"kind": "alert"}');
create or replace function jobq.open_batch(
    on_success jsonb default null, on_end jsonb default null, on_first_death jsonb default null
)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _batch_id constant uuid := jobq_private.new_id((
        select g.shard_id from jobq_private.setting as g
    ));
    _given constant jsonb[] := array[
        open_batch.on_success, open_batch.on_end, open_batch.on_first_death
    ];
    _jobs jobq_private.new_job[];
    _ids uuid[];
begin
    _jobs := jobq_private.read_records(
        null::jobq_private.new_job, 'jobs',
        (select coalesce(jsonb_agg(g order by n), '[]') from unnest(_given) with ordinality as u (g, n) where g is not null),
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,batch_id,cost}'
    );
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].callback_of := _batch_id;
        _jobs[_n].dedup := 'enqueue';
        _jobs[_n].metadata := coalesce(_jobs[_n].metadata, '{}')
            || jsonb_build_object('batch_id', _batch_id);
    end loop;
    _ids := (jobq_private.store_jobs(_jobs)).ids;
    insert into jobq_private.batch (batch_id, on_success, on_end, on_first_death, queue)
    select
        _batch_id,
        _ids[case when _given[1] is not null then 1 end],
        _ids[case when _given[2] is not null then num_nonnulls(_given[1], _given[2]) end],
        _ids[case when _given[3] is not null then cardinality(_ids) end],
        coalesce(
            (select j.queue from jobq_private.job as j where j.job_id = _ids[1]), 'default'
        );
    return _batch_id;
end
$$;
grant execute on function jobq.open_batch to jobq_producer;

comment on function jobq.open_batch is 'Creates a batch, with the jobs to run when it has succeeded, has ended, or has its first dead member; returns its id.';

-- Purpose: Enqueues a job of each kind that has subscribed to an event, and returns their ids.
-- Invariant: all or none. The jobs have the event's name as event in their metadata. Nobody who
-- subscribes later gets a job; emit() is for jobs that wait. Raises: 22004, 22023, JQ004, JQ005,
-- JQ006, JQ010. Never: JOB_NOT_FOUND, BATCH_NOT_FOUND, BATCH_ENDED, ILLEGAL_STATE.
-- Argument event: the name of the event.
-- Argument idempotency_key: publishing again with the same key creates no second job of a kind;
-- null means no key.
-- Returns: a row for each subscriber, by kind; none if there is none.
-- Column job_id: the id of the new job, or of the existing job with the same key.
-- Example: select * from jobq.publish('order.paid', '{"order_id": 7}');
create or replace function jobq.publish(
    event text, payload jsonb default '{}', metadata jsonb default null,
    idempotency_key text default null
)
returns table (kind text, job_id uuid) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    _jobs jsonb;
begin
    perform jobq_private.check_event(publish.event, publish.payload);
    perform jobq_private.check_argument(case when jsonb_typeof(publish.metadata) <> 'object'
        then 'metadata must be a JSON object' end);
    _jobs := jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'kind', s.kind, 'queue', s.queue, 'idempotency_key', publish.idempotency_key
    )) || jsonb_build_object(
        'payload', publish.payload,
        'metadata', coalesce(publish.metadata, '{}') || jsonb_build_object('event', publish.event)
    ) order by s.kind)
    from jobq_private.subscription as s
    where s.event = publish.event;
    return query
    select _jobs -> (e.ordinal - 1) ->> 'kind', e.job_id
    from jobq.enqueue_many(coalesce(_jobs, '[]')) as e
    order by e.ordinal;
end
$$;
grant execute on function jobq.publish to jobq_producer;

comment on function jobq.publish is 'Enqueues a job of each kind that has subscribed to an event, and returns their ids.';

-- Purpose: Returns the results of the steps of many running jobs.
-- Invariant: leaves out attempts that have lost their leases. Raises: 22004, 22023.
-- Column name: the step's name; null in the only row of a job without steps
-- Column value: the result of the step
-- Example: select * from jobq_internal.read_steps(array[:'running']::uuid[], '{1}');
create or replace function jobq_internal.read_steps(job_ids uuid[], attempts integer[])
returns table (job_id uuid, name text, value jsonb) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_mergejoin = off set enable_hashjoin = off as $$
#variable_conflict use_column
begin
    perform jobq_private.check_attempts(read_steps.job_ids, read_steps.attempts);
    return query
    select j.job_id, s.name, s.value
    from unnest(read_steps.job_ids, read_steps.attempts) as i (job_id, attempt)
    join jobq_private.job as j
        on j.job_id = i.job_id and j.attempt = i.attempt and j.lease_expires_at is not null
    left join jobq_private.step as s on s.job_id = j.job_id
    -- by the index, whatever the statistics say
    where j.job_id = any(read_steps.job_ids);
end
$$;
grant execute on function jobq_internal.read_steps to jobq_worker;

comment on function jobq_internal.read_steps is 'Returns the results of the steps of many running jobs.';

-- Purpose: Returns the chunks of a stream after a cursor, and whether these are the last.
-- Invariant: each chunk once, in the order of generations and of their numbers: an attempt
-- appends only while it holds the job. Reads at most 4 MiB. With wait, it polls until there is a
-- chunk or the job has ended, and holds its connection; a client that listens needs no wait, see
-- await_stream(). Raises: 22004, 22023, JQ001.
-- Argument after: the cursor of the last chunk that was read; null means from the beginning
-- Argument wait: how long to wait for a chunk, 0 to 30 s
-- Argument max_chunks: maximum number, 1 to 1000
-- Column chunks: a JSON array of objects: cursor, generation (the attempt that wrote it),
-- chunk and appended_at
-- Column cursor: the cursor after these chunks, for the next call
-- Column is_ended: whether the job has ended and this is the end of the stream
-- Example: select chunks, cursor, is_ended from jobq.read_stream(:'running', 'tokens');
create or replace function jobq.read_stream(
    job_id uuid, stream text, after text default null, wait interval default '0',
    max_chunks integer default 1000
)
returns table (chunks jsonb, cursor text, is_ended boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off as $$
declare
    _until timestamptz;
    _after integer[];
begin
    perform jobq_private.check_given('stream, wait and max_chunks', num_nulls(
        read_stream.stream, read_stream.wait, read_stream.max_chunks
    ));
    perform jobq_private.check_argument(case
        when read_stream.after !~ '^[0-9]{1,9}-[0-9]{1,9}$'
            or read_stream.wait not between '0' and '30 s'
            or read_stream.max_chunks not between 1 and 1000
        then 'after must be a cursor such as 1-20, wait from 0 to 30 s, max_chunks from 1 to 1000'
    end);
    _until := clock_timestamp() + read_stream.wait;
    read_stream.cursor := coalesce(read_stream.after, '0-0');
    _after := string_to_array(read_stream.cursor, '-')::integer[];
    loop
        -- Before it reads the chunks: after its end, a job gets no more.
        is_ended := not exists (
            select from jobq_private.job as j where j.job_id = read_stream.job_id
        );
        if is_ended then
            perform jobq.get_job(read_stream.job_id);
        end if;
        select
            coalesce(jsonb_agg(jsonb_build_object(
                'cursor', format('%s-%s', c.generation, c.n), 'generation', c.generation,
                'chunk', c.chunk, 'appended_at', c.appended_at
            ) order by c.generation, c.n) filter (where c.bytes_before < 4194304), '[]'),
            is_ended and count(*) < read_stream.max_chunks
                and coalesce(max(c.bytes_before) < 4194304, true)
        into chunks, is_ended
        from (
            select
                r.*, sum(pg_column_size(r.chunk)) over (order by r.generation, r.n)
                    - pg_column_size(r.chunk) as bytes_before
            from (
                select s.generation, s.n, s.chunk, s.appended_at
                from jobq_private.stream_chunk as s
                where s.job_id = read_stream.job_id
                and s.stream = read_stream.stream
                and (s.generation, s.n) > (_after[1], _after[2])
                order by s.generation, s.n
                limit read_stream.max_chunks
            ) as r
        ) as c;
        exit when chunks <> '[]' or is_ended or clock_timestamp() >= _until;
        perform pg_sleep(0.01);
    end loop;
    read_stream.cursor := coalesce(chunks -> -1 ->> 'cursor', read_stream.cursor);
    return next;
end
$$;
grant execute on function jobq.read_stream
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.read_stream is 'Returns the chunks of a stream after a cursor, and whether these are the last.';

-- Purpose: Returns the chunks of several streams, each after a cursor.
-- Invariant: as read_stream(), without waiting. Raises: 22004, 22023, JQ001.
-- Argument job_ids: the job of each stream
-- Argument streams: the name of each stream
-- Argument afters: for each the cursor of the last chunk that was read; null means from the
-- beginning
-- Column chunks: as of read_stream()
-- Column cursor: the cursor after these chunks, for the next call
-- Column is_ended: whether the job has ended and this is the end of the stream
-- Example: select cursor from jobq_internal.read_streams(array[:'running'::uuid], '{tokens}', '{1-2}');
create or replace function jobq_internal.read_streams(
    job_ids uuid[], streams text[], afters text[]
)
returns table (chunks jsonb, cursor text, is_ended boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given(
        'job_ids, streams and afters', num_nulls(job_ids, streams, afters)
    );
    return query
    select r.*
    from unnest(job_ids, streams, afters) with ordinality as i (job_id, stream, after, n)
    cross join lateral jobq.read_stream(i.job_id, i.stream, i.after) as r
    order by i.n;
end
$$;
grant execute on function jobq_internal.read_streams
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq_internal.read_streams is 'Returns the chunks of several streams, each after a cursor.';

-- Purpose: Returns dead and cancelled jobs of a tree to their queues, and returns their ids.
-- Invariant: each as by redrive(), all or none, in sets: jobs that wait for others are blocked
-- again, and succeeded jobs do not run again. Locks blocked jobs first: a concurrent cancellation
-- after a death is waited for, or sees the redrive. Raises: 22004, 22023, JQ001, JQ002, JQ004.
-- Argument job_id: any job of the tree; for downstream, the first job
-- Argument scope: failed (dead jobs, and jobs cancelled because of them), downstream (this job
-- and those that wait for it, if dead or cancelled) or all (all dead or cancelled jobs)
-- Returns: the ids of the redriven jobs.
-- Example: select * from jobq.redrive_tree(:'dead');
create or replace function jobq.redrive_tree(job_id uuid, scope text default 'failed')
returns setof uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _all uuid[];
    _chosen uuid[];
    _ended timestamptz[];
    _back uuid[];
begin
    perform jobq.get_job(redrive_tree.job_id);
    perform jobq_private.check_argument(case
        when (redrive_tree.scope in ('failed', 'downstream', 'all')) is not true
        then 'scope must be failed, downstream or all'
    end);
    _all := array(
        select t.job_id
        from jobq_private.tree(redrive_tree.job_id, case redrive_tree.scope
            when 'downstream' then 'down' else 'all'
        end) as t (job_id)
    );
    perform from jobq_private.job as j
    where j.job_id = any(_all) and j.state = 'blocked'
    order by j.job_id
    for no key update;
    with chosen as materialized (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.job_id = any(_all)
        and (
            a.state = 'dead'
            or (
                a.state = 'cancelled'
                and (
                    redrive_tree.scope <> 'failed'
                    or a.last_error_code in ('PARENT_FAILED', 'PARENT_GONE')
                )
            )
        )
        order by a.job_id
        for update of a
    )
    select array_agg(c.job_id order by c.job_id), array_agg(c.finished_at order by c.job_id)
    into _chosen, _ended
    from chosen as c;
    if _chosen is null then
        return;
    end if;
    _back := array(select r.* from jobq_private.redrive_jobs(_chosen, _ended) as r (job_id));
    perform jobq_private.refuse_redrive(jobq.get_job(c.job_id))
    from unnest(_chosen) as c (job_id)
    where c.job_id <> all(_back)
    order by c.job_id;
    return query select b.job_id from unnest(_back) as b (job_id) order by b.job_id;
end
$$;
grant execute on function jobq.redrive_tree to jobq_operator;

comment on function jobq.redrive_tree is 'Returns dead and cancelled jobs of a tree to their queues, and returns their ids.';

-- Purpose: Saves the results of many steps, of one job or several, and returns for each
-- whether it was new.
-- Invariant: only the attempt that holds the job can save, under the lock of its row; the first
-- value is kept. outcome is 'saved', 'known' for a step with an earlier value, which is returned,
-- or 'lost' if the attempt has lost its lease. Rows are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument names: the steps' names, parallel to job_ids, 1 to 256 characters each; must
-- not begin with event:
-- Argument results: the results of the steps, a JSON array parallel to job_ids
-- Column name: the step's name
-- Column value: the saved value; null if the attempt has lost its lease
-- Column outcome: `saved`, `known` or `lost`
-- Example: select * from jobq_internal.save_steps(array[:'running']::uuid[], '{1}', '{ship}', '[true]');
create or replace function jobq_internal.save_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns table (job_id uuid, name text, value jsonb, outcome text) language plpgsql
security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set jit = off set enable_seqscan = off set enable_mergejoin = off set enable_nestloop = off as $$
#variable_conflict use_column
begin
    perform jobq_private.check_results(
        save_steps.job_ids, save_steps.attempts, save_steps.results
    );
    if num_nulls(save_steps.names, save_steps.results) > 0
        or array_position(save_steps.names, null) is not null
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'names and results');
    elsif cardinality(save_steps.names) <> cardinality(save_steps.job_ids)
        or cardinality(save_steps.names) > 1000
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'names: one for each job_id, and at most 1000'
        );
    end if;
    perform jobq_private.check_argument((
        select format(
            'name must have 1 to 256 characters, and not begin with ''event:'': ''%s''', left(s.name, 300)
        )
        from unnest(save_steps.names) as s (name)
        where length(s.name) not between 1 and 256 or s.name like 'event:%'
        limit 1
    ));
    -- Before the steps are read: another session may be about to save one for the attempt.
    perform from jobq_private.job as j
    where j.job_id = any(save_steps.job_ids) and j.lease_expires_at is not null
    order by j.job_id
    for no key update;
    -- Hash joins: nested loops would take time quadratic in the steps of a call.
    return query
    with given as materialized (
        select
            g.job_id, g.attempt, g.name, g.value, g.n, j.job_id is not null as is_held,
            row_number() over (
                partition by g.job_id, g.attempt, g.name order by g.n
            ) as place
        from rows from (
            unnest(save_steps.job_ids, save_steps.attempts, save_steps.names),
            jsonb_array_elements(save_steps.results)
        ) with ordinality as g (job_id, attempt, name, value, n)
        left join (
            select h.job_id, h.attempt
            from jobq_private.job as h
            where h.job_id = any(save_steps.job_ids) and h.lease_expires_at is not null
        ) as j on j.job_id = g.job_id and j.attempt = g.attempt
    ),
    saved as (
        insert into jobq_private.step as s (job_id, name, value, attempt)
        select g.job_id, g.name, g.value, g.attempt
        from given as g
        where g.is_held and g.place = 1
        on conflict on constraint step_pkey do nothing
        returning s.job_id, s.name, s.value
    )
    select
        g.job_id, g.name,
        case when g.is_held then coalesce(s.value, (
            select k.value
            from jobq_private.step as k
            where k.job_id = g.job_id and k.name = g.name
        )) end,
        case
            when not g.is_held then 'lost'
            when s.job_id is not null and g.place = 1 then 'saved'
            else 'known'
        end
    from given as g
    left join saved as s on s.job_id = g.job_id and s.name = g.name
    order by g.n;
end
$$;
grant execute on function jobq_internal.save_steps to jobq_worker;

comment on function jobq_internal.save_steps is 'Saves the results of many steps, of one job or several, and returns for each whether it was new.';

-- Purpose: Sends a message to a job, which receives those of a name in their order; returns
-- its number.
-- Invariant: part of the caller's transaction. A message is a signal with a number, from 1
-- and without gaps; waits for another transaction that sends to the same name. Messages are
-- kept as long as the job. Has no effect on a finished job.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name under which the job receives it, 1 to 200 characters
-- Argument payload: the message: any JSON up to max_payload_bytes
-- Returns: the number of the message among those of its name
-- Example: select jobq.send_message(:'waiting', 'chat', '"please use metric units"');
create or replace function jobq.send_message(job_id uuid, name text, payload jsonb default 'null')
returns integer language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job constant jobq.job := jobq.get_job(send_message.job_id);
    _number integer;
begin
    perform jobq_private.check_event(send_message.name, send_message.payload);
    perform jobq_private.check_argument(case when length(send_message.name) > 200
        then 'name must have 1 to 200 characters' end);
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when _job.finished_at is not null
        then format('job_id %s is %s: it cannot receive messages', _job.job_id, _job.state)
    end);
    loop
        _number := 1 + coalesce((
            select right(e.event, 9)::integer
            from jobq_private.event as e
            where e.event between jobq_private.message_event(_job.job_id, send_message.name, 0)
                and jobq_private.message_event(_job.job_id, send_message.name, 999999999)
            and length(e.event) = length(send_message.name) + 55
            order by e.event desc
            limit 1
        ), 0);
        -- false: another transaction has sent the message of this number meanwhile
        exit when jobq_private.store_event(
            jobq_private.message_event(_job.job_id, send_message.name, _number), _job.job_id,
            send_message.payload
        );
    end loop;
    return _number;
end
$$;
grant execute on function jobq.send_message to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.send_message is 'Sends a message to a job, which receives those of a name in their order; returns its number.';

-- Purpose: Sends a signal to a job that waits for it now or later; returns true for the
-- first one of this name.
-- Invariant: an event for this job only, under the name that it waits for; the first
-- one is kept. Part of the caller's transaction. Has no effect on a finished job.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name that the job waits for as an event, 1 to 256 characters
-- Argument payload: the payload: any JSON up to max_payload_bytes
-- Returns: true for the first signal of the name
-- Example: select jobq.signal(:'waiting', 'approval', '{"by": "ada"}');
create or replace function jobq.signal(job_id uuid, name text, payload jsonb default 'null')
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _job jobq.job := jobq.get_job(signal.job_id);
begin
    perform jobq_private.check_event(signal.name, signal.payload);
    perform jobq_private.check_argument(case
        when signal.name ~ '^(answer|message|job_ended):'
        then 'name must not begin with ''answer:'', ''message:'' or ''job_ended:'''
    end);
    perform jobq_private.check_problem('ILLEGAL_STATE', case
        when _job.finished_at is not null
        then format('job_id %s is %s: it cannot receive signals', signal.job_id, _job.state)
    end);
    return jobq_private.store_event(signal.name, signal.job_id, signal.payload);
end
$$;
grant execute on function jobq.signal to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.signal is 'Sends a signal to a job that waits for it now or later; returns true for the first one of this name.';

-- Purpose: Subscribes a kind to an event: each publish() enqueues a job of it.
-- Invariant: one subscription for each event and kind; the last call decides about its queue.
-- Raises: 22004, 22023, 42501.
-- Argument event: the name of the event.
-- Argument queue: the queue of the jobs; null means the kind's, else default.
-- Example: select jobq.subscribe('order.paid', 'send_receipt');
create or replace function jobq.subscribe(event text, kind text, queue text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _violated text;
begin
    perform jobq_private.check_given('event and kind', num_nulls(
        subscribe.event, subscribe.kind
    ));
    insert into jobq_private.subscription as s (event, kind, queue)
    values (subscribe.event, subscribe.kind, subscribe.queue)
    on conflict on constraint subscription_pkey do update
    set queue = excluded.queue
    where s.queue is distinct from excluded.queue;
    if found then
        perform jobq_private.record_audit('subscribe', subscribe.kind, subscribe.event);
    end if;
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
    when insufficient_privilege then
        perform jobq_private.raise_error('QUEUE_DENIED', format(
            'queue %s, kind %s', coalesce(subscribe.queue, 'of the kind'), subscribe.kind
        ));
end
$$;
grant execute on function jobq.subscribe to jobq_worker, jobq_operator;

comment on function jobq.subscribe is 'Subscribes a kind to an event: each publish() enqueues a job of it.';

-- Purpose: Ends the subscription of a kind to an event, and returns whether there was one.
-- Invariant: repeating it changes nothing. Raises: 22004.
-- Argument event: the name of the event.
-- Returns: whether there was a subscription.
-- Example: select jobq.unsubscribe('order.paid', 'send_receipt');
create or replace function jobq.unsubscribe(event text, kind text)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform jobq_private.check_given('event and kind', num_nulls(
        unsubscribe.event, unsubscribe.kind
    ));
    delete from jobq_private.subscription as s
    where s.event = unsubscribe.event and s.kind = unsubscribe.kind;
    if not found then
        return false;
    end if;
    perform jobq_private.record_audit('unsubscribe', unsubscribe.kind, unsubscribe.event);
    return true;
end
$$;
grant execute on function jobq.unsubscribe to jobq_worker, jobq_operator;

comment on function jobq.unsubscribe is 'Ends the subscription of a kind to an event, and returns whether there was one.';

drop function if exists jobq_private.wait_again;

commit;
