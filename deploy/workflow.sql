-- Deploy jobq:workflow to pg
-- Made by sql/snapshot.py from sql/workflow/: edit that.
begin;
set local role jobq_owner;

-- Purpose: the graph of a live job; a new one for null, or where it is in none.
-- Invariant: a job in none becomes a node of its new graph, by its kind. Raises: JQ001, JQ002.
-- Never: NULL_ARGUMENT.
create or replace function jobq_private.graph_id(graph_of uuid)
returns uuid
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _graph_id uuid;
    _job jobq.job;
begin
    if graph_of is null then
        return jobq_private.new_id();
    end if;
    _job := jobq.get_job(graph_of);
    if _job.finished_at is not null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s: its graph takes no more jobs from it', graph_of, _job.state
        ));
    end if;
    insert into jobq_private.node as n (job_id, graph_id, name)
    values (graph_of, jobq_private.new_id(), _job.kind)
    on conflict on constraint node_pkey do nothing;
    select n.graph_id into _graph_id from jobq_private.node as n where n.job_id = graph_of;
    return _graph_id;
end
$$;

revoke all on function jobq_private.graph_id from public;

comment on function jobq_private.graph_id is
'The graph of a live job, or a new one.';

-- Purpose: the jobs of a graph as given, an array of objects with name, after and before.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.graph_nodes(graph jsonb)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text;
    _nodes constant jsonb := graph -> 'jobs';
begin
    if graph is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'graph');
    elsif jsonb_typeof(graph) <> 'object' or graph - 'jobs' <> '{}'
        or jsonb_typeof(_nodes) is distinct from 'array'
        or jsonb_array_length(_nodes) not between 1 and 100000
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'graph must be an object with jobs, an array of 1 to 100000'
        );
    end if;
    select format('job %s: %s', n.place, case
        when jsonb_typeof(n.node) <> 'object' then 'must be an object'
        when jsonb_typeof(n.node -> 'name') is distinct from 'string'
            or length(n.node ->> 'name') not between 1 and 256
        then 'name must be a text of 1 to 256 characters'
        else 'after and before must be arrays of names and ids'
    end) into _problem
    from jsonb_array_elements(_nodes) with ordinality as n (node, place)
    where jsonb_typeof(n.node) <> 'object'
    or jsonb_typeof(n.node -> 'name') is distinct from 'string'
    or length(n.node ->> 'name') not between 1 and 256
    or coalesce(jsonb_typeof(n.node -> 'after'), 'array') not in ('array', 'null')
    or coalesce(jsonb_typeof(n.node -> 'before'), 'array') not in ('array', 'null')
    or jsonb_path_exists(n.node, 'strict $.after[*] ? (@.type() != "string")', silent => true)
    or jsonb_path_exists(n.node, 'strict $.before[*] ? (@.type() != "string")', silent => true)
    limit 1;
    if _problem is null then
        select format('name %s is given twice', n.node ->> 'name') into _problem
        from jsonb_array_elements(_nodes) as n (node)
        group by n.node ->> 'name'
        having count(*) > 1
        limit 1;
    end if;
    if _problem is not null then
        perform jobq_private.raise_error('INVALID_ARGUMENT', _problem);
    end if;
    return _nodes;
end
$$;

revoke all on function jobq_private.graph_nodes from public;

comment on function jobq_private.graph_nodes is
'The jobs of a graph as given.';

-- Purpose: enqueue_graph(), also for a schedule, whose graph was checked when it was declared.
-- Invariant: as there. Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.add_graph(graph jsonb, graph_of uuid, is_checked boolean)
returns table (name text, job_id uuid)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _nodes jsonb := jobq_private.graph_nodes(add_graph.graph);
    _graph_id constant uuid := jobq_private.graph_id(add_graph.graph_of);
    _names text[];
    _ids uuid[];
    _others uuid[];
    _arrows jobq_private.arrow[];
    _size constant integer := jsonb_array_length(_nodes);
begin
    select array_agg(n.node ->> 'name' order by n.place), array_agg(jobq_private.new_id())
    into _names, _ids
    from jsonb_array_elements(_nodes) with ordinality as n (node, place);
    _others := jobq_private.graph_others(_nodes, _names, _graph_id);
    _arrows := jobq_private.graph_arrows(_nodes, _names, _others, _graph_id);
    if jobq_private.join_alone(_arrows, _others, _size) then
        _arrows := jobq_private.graph_arrows(_nodes, _names, _others, _graph_id);
    end if;
    perform jobq_private.check_arrows(_arrows, _names || array(
        select coalesce(n.name, o.job_id::text)
        from unnest(_others) with ordinality as o (job_id, place)
        left join jobq_private.node as n on n.job_id = o.job_id
        order by o.place
    ));
    perform jobq_private.hold_children(array(
        select _others[a.child - _size] from unnest(_arrows) as a
        where a.child > _size and a.parent <= _size
    ));
    perform jobq_private.store_nodes(
        _nodes, _names, _ids, _others, array(
            select a from unnest(_arrows) as a where a.child <= _size or a.parent <= _size
        ), _graph_id, add_graph.is_checked
    );
    return query
    select n.name, n.job_id from unnest(_names, _ids) as n (name, job_id);
end
$$;

revoke all on function jobq_private.add_graph from public;

comment on function jobq_private.add_graph is
'Adds jobs that wait for each other, all or none.';

-- Purpose: where the children of each job begin in a list of arrows by parent, less one; and in
-- the end where the last ones end.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.arrow_ends(arrows jobq_private.arrow[], size integer)
returns integer[]
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select array_agg(c.before order by c.place)
    from (
        select
            p.place,
            (sum(coalesce(a.children, 0)) over (order by p.place) - coalesce(a.children, 0))::integer as before
        from generate_series(1, arrow_ends.size + 1) as p (place)
        left join (
            select w.parent, count(*) as children from unnest(arrow_ends.arrows) as w group by w.parent
        ) as a on a.parent = p.place
    ) as c
$$;

revoke all on function jobq_private.arrow_ends from public;

comment on function jobq_private.arrow_ends is
'Where the children of each job begin in a list of arrows.';

-- Purpose: a new job as one of a graph: whether it waits, whether others wait for it, and of which
-- slot of a schedule it is.
-- Invariant: reads nothing. Raises: nothing.
create or replace function jobq_private.as_node(
    job jobq_private.new_job, waits_in uuid, is_awaited boolean, slot_at timestamptz
)
returns jobq_private.new_job
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    job.callback_of := waits_in;
    job.is_awaited := as_node.is_awaited;
    job.slot_at := as_node.slot_at;
    return job;
end
$$;

revoke all on function jobq_private.as_node from public;

comment on function jobq_private.as_node is
'A new job as one of a graph.';

-- Purpose: mark the live jobs that these children wait for, so that their ends leave a look.
-- Invariant: under the rows' locks, before they end; what somebody has locked is marked at a
-- later look. Raises: nothing.
create or replace function jobq_private.await_parents(children uuid[], queues text[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _found tid[];
begin
    _found := array(
        select j.ctid
        from jobq_private.job as j
        where j.job_id = any(array(
            select e.parent
            from jobq_private.edge as e
            where e.child = any(await_parents.children) and e.is_open
        ))
        and not j.is_awaited
        and (await_parents.queues is null or j.queue = any(await_parents.queues))
        order by j.job_id
        for no key update skip locked
    );
    update jobq_private.job as j set is_awaited = true where j.ctid = any(_found);
end
$$;

revoke all on function jobq_private.await_parents from public;

comment on function jobq_private.await_parents is
'Marks the live jobs that these children wait for.';

-- Purpose: queue or cancel a job that waits for the end of a batch, unless it has moved before; reason
-- is why it is cancelled.
-- Invariant: one that somebody holds is left. Returns how many moved: 0 or 1. Raises: nothing.
create or replace function jobq_private.call_back(job_id uuid, state text, reason text default null)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue text;
begin
    update jobq_private.job as j
    set
        state = call_back.state,
        run_at = greatest(j.run_at, clock_timestamp()),
        cancel_reason = case when call_back.state = 'cancelled' then call_back.reason end
    where j.job_id = (
        select c.job_id
        from jobq_private.job as c
        where c.job_id = call_back.job_id and c.state = 'blocked'
        for update skip locked
    )
    returning j.queue into _queue;
    if not found then
        return 0;
    elsif call_back.state = 'queued' then
        perform jobq_private.call_lanes(array[call_back.job_id]);
        perform jobq_private.wake(array[_queue]);
    end if;
    return 1;
end
$$;

revoke all on function jobq_private.call_back from public;

comment on function jobq_private.call_back is
'Queues or cancels a job that waits for the end of a batch.';

-- Purpose: cancel those of these blocked jobs that can never run, since a parent, of parallel
-- arrays, has ended as it has.
-- Invariant: the caller has the rows that are held. Their open edges stay, so that a redrive has
-- them wait again. A statement for each step, whatever their number. Returns how many.
-- Raises: nothing.
create or replace function jobq_private.cancel_children(
    children uuid[], parents uuid[], ends text[], held uuid[]
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _doomed uuid[];
    _attempts integer[];
begin
    if not exists (
        select from unnest(cancel_children.ends) as t (ended_as) where t.ended_as <> 'succeeded'
    ) then
        return 0;
    end if;
    with doomed as materialized (
        select distinct on (t.child) t.child, t.parent, t.ended_as
        from unnest(
            cancel_children.children, cancel_children.parents, cancel_children.ends
        ) as t (child, parent, ended_as)
        join jobq_private.edge as e
            -- Not by edge_open_idx, which has all that a child waits for.
            on e.child = t.child and e.parent = t.parent and coalesce(e.is_open, false)
        where t.child = any(cancel_children.held)
        and jobq_private.follows(t.ended_as, e.after_failure) = 'dooms'
        order by t.child, t.parent
    ),
    told as (
        update jobq_private.job as j
        set
            cancel_reason = format('job_id %s, which it waited for, is %s', d.parent, d.ended_as),
            last_error_code = case d.ended_as
                when 'gone' then 'PARENT_GONE' else 'PARENT_FAILED'
            end,
            last_error = format('job_id %s is %s', d.parent, d.ended_as)
        from doomed as d
        where j.job_id = d.child and j.state = 'blocked'
        returning j.job_id, j.attempt
    )
    select array_agg(t.job_id), array_agg(t.attempt) into _doomed, _attempts
    from told as t;
    if _doomed is null then
        return 0;
    end if;
    perform jobq_private.archive_jobs(_doomed, _attempts, 'cancelled', null, false);
    return cardinality(_doomed);
end
$$;

revoke all on function jobq_private.cancel_children from public;

comment on function jobq_private.cancel_children is
'Cancels jobs that wait for one that is dead or cancelled.';

-- Purpose: refuse a graph whose arrows lead round, and say where.
-- Invariant: a graph that lists parents first is known to be sound at a glance; any other one
-- is worked through once, each job and arrow. Reads nothing. Raises: 22023.
create or replace function jobq_private.check_arrows(arrows jobq_private.arrow[], names text[])
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := cardinality(names);
    _left integer[] := array_fill(0, array[_size]);
    _first integer[];
    _children integer[];
    _free integer[];
    _done integer := 0;
    _place integer;
    _arrow jobq_private.arrow;
    _n integer := 0;
begin
    if not exists (select from unnest(arrows) as a where a.parent >= a.child) then
        return;
    end if;
    _children := array_fill(0, array[cardinality(arrows)]);
    for _arrow in select a.* from unnest(arrows) as a order by a.parent loop
        _n := _n + 1;
        _children[_n] := _arrow.child;
        _left[_arrow.child] := _left[_arrow.child] + 1;
    end loop;
    _first := jobq_private.arrow_ends(arrows, _size);
    _free := array(select p from generate_series(1, _size) as p where _left[p] = 0);
    while _done < cardinality(_free) loop
        _done := _done + 1;
        for _n in _first[_free[_done]] + 1 .. _first[_free[_done] + 1] loop
            _place := _children[_n];
            _left[_place] := _left[_place] - 1;
            if _left[_place] = 0 then
                _free[cardinality(_free) + 1] := _place;
            end if;
        end loop;
    end loop;
    if _done < _size then
        perform jobq_private.raise_error(
            'GRAPH_CYCLE', jobq_private.cycle_among(arrows, names, _left)
        );
    end if;
end
$$;

revoke all on function jobq_private.check_arrows from public;

comment on function jobq_private.check_arrows is
'Refuses a graph whose arrows lead round.';

-- Purpose: refuse an event that cannot be meant.
-- Invariant: reads the limits of a payload. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_event(event text, payload jsonb)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _problem text[];
begin
    if num_nulls(check_event.event, check_event.payload) > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'event and payload');
    elsif length(check_event.event) not between 1 and 256 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'event must have 1 to 256 characters'
        );
    end if;
    select jobq_private.value_problem(
        check_event.payload, jobq_private.json_size(check_event.payload), g.max_payload_bytes,
        g.max_payload_depth
    ) into _problem
    from jobq_private.setting as g;
    if _problem is not null then
        perform jobq_private.raise_error(_problem[1], 'payload: ' || _problem[2]);
    end if;
end
$$;

revoke all on function jobq_private.check_event from public;

comment on function jobq_private.check_event is
'Refuses an event that cannot be meant.';

-- Purpose: refuse the graph of a schedule that could not be added at each of its slots.
-- Invariant: its jobs wait for each other alone, and no name is that of the schedule's own
-- job, its kind. Raises: 22004, 22023, JQ001, JQ005, JQ006.
-- Never: QUEUE_FULL.
create or replace function jobq_private.check_graph(graph jsonb, kind text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _nodes constant jsonb := jobq_private.graph_nodes(graph);
    _names text[];
    _jobs jobq_private.new_job[];
begin
    select array_agg(n.node ->> 'name' order by n.place) into _names
    from jsonb_array_elements(_nodes) with ordinality as n (node, place);
    if kind = any(_names)
        or jobq_private.graph_others(_nodes, _names, null) <> '{}'
        or jsonb_path_exists(_nodes, '$[*].batch_id')
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'a graph of a schedule names its own jobs alone, none by the schedule''s kind, and no batch'
        );
    elsif jsonb_path_exists(_nodes, '$[*].keyvalue() ? (
        (@.key == "expires_at" || @.key == "run_at") && @.value != null
    )') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'a graph of a schedule is added again and again: no run_at and no expires_at'
        );
    end if;
    perform jobq_private.check_arrows(
        jobq_private.graph_arrows(_nodes, _names, '{}', null), _names
    );
    _jobs := jobq_private.node_jobs(_nodes);
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].schedule_id := jobq_private.id_floor('epoch');
    end loop;
    perform jobq_private.check_new_jobs(_jobs);
    perform jobq_private.check_payload_schemas(_jobs);
end
$$;

revoke all on function jobq_private.check_graph from public;

comment on function jobq_private.check_graph is
'Refuses the graph of a schedule that could not be added at each of its slots.';

-- Purpose: refuse steps that cannot be meant.
-- Invariant: the arrays are parallel and name at most 1,000 steps; the names that wait_for()
-- uses are its own. Raises: 22004, 22023, JQ005, JQ006.
create or replace function jobq_private.check_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _name text;
begin
    perform jobq_private.check_results(
        check_steps.job_ids, check_steps.attempts, check_steps.results
    );
    if num_nulls(check_steps.names, check_steps.results) > 0
        or exists (select from unnest(check_steps.names) as s (name) where s.name is null)
    then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'names and results');
    elsif cardinality(check_steps.names) <> cardinality(check_steps.job_ids)
        or cardinality(check_steps.names) > 1000
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'names: one for each job_id, and at most 1000'
        );
    end if;
    select s.name into _name
    from unnest(check_steps.names) as s (name)
    where length(s.name) not between 1 and 256 or s.name like 'event:%'
    limit 1;
    if found then
        perform jobq_private.raise_error('INVALID_ARGUMENT', format(
            'name must have 1 to 256 characters, and not begin with ''event:'': ''%s''', left(_name, 300)
        ));
    end if;
end
$$;

revoke all on function jobq_private.check_steps from public;

comment on function jobq_private.check_steps is
'Refuses steps that cannot be meant.';

-- Purpose: how these jobs have ended, parallel to them: null for one that lives, gone for one
-- of which there is no trace.
-- Invariant: reads live jobs and the archive with the caller's snapshot, as sets; of the archive
-- the days since the oldest of the ids. Raises: nothing.
create or replace function jobq_private.ends_of(job_ids uuid[])
returns text[]
language plpgsql
stable
strict
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_hashjoin = on
set enable_mergejoin = off
as $$
declare
    _ended constant uuid[] := array(
        select i.job_id from unnest(ends_of.job_ids) as i (job_id)
        except
        select j.job_id from jobq_private.job as j where j.job_id = any(ends_of.job_ids)
    );
    _since constant timestamptz := (
        select jobq_private.id_time(i.job_id) - interval '1 day'
        from unnest(_ended) as i (job_id)
        order by i.job_id
        limit 1
    );
begin
    if _ended = '{}' then
        return array_fill(null::text, array[cardinality(ends_of.job_ids)]);
    end if;
    return array(
        select e.state
        from unnest(ends_of.job_ids) with ordinality as i (job_id, n)
        left join (
            select o.job_id, coalesce(l.state, 'gone') as state
            from unnest(_ended) as o (job_id)
            left join (
                select distinct on (a.job_id) a.job_id, a.state
                from jobq_private.job_archive as a
                where a.job_id = any(_ended) and a.finished_at >= _since
                order by a.job_id, a.finished_at desc
            ) as l on l.job_id = o.job_id
        ) as e on e.job_id = i.job_id
        order by i.n
    );
end
$$;

revoke all on function jobq_private.ends_of from public;

comment on function jobq_private.ends_of is
'How jobs have ended, if they have.';

-- Purpose: close edges between children and parents, given as parallel arrays, as far as these
-- have ended; cancel the children that can never run now.
-- Invariant: of a blocked child only by who has its row, and as its parents are seen since. What
-- is locked is left. A child that has ended is released by nobody, and may be redriven, which
-- leaves a look. Returns how many edges it has closed and
-- how many children cancelled. Raises: nothing.
create or replace function jobq_private.close_edges(
    children uuid[], parents uuid[], held uuid[], queues text[], out closed bigint,
    out cancelled bigint
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _ends constant text[] := jobq_private.ends_of(parents);
begin
    with over as materialized (
        select e.child, e.parent
        from unnest(children, parents, _ends) as t (child, parent, ended_as)
        join jobq_private.edge as e
            -- Not by edge_open_idx, which has all that a child waits for.
            on e.child = t.child and e.parent = t.parent and coalesce(e.is_open, false)
        where (
            e.child in (select h.job_id from unnest(close_edges.held) as h (job_id))
            and jobq_private.follows(t.ended_as, e.after_failure) = 'closes'
        )
        or (
            close_edges.queues is null
            and t.ended_as = 'succeeded'
            and not exists (
                select from jobq_private.job as j
                where j.job_id = e.child and j.state = 'blocked'
            )
        )
        for update of e skip locked
    )
    update jobq_private.edge as e
    set is_open = false
    from over as o
    where e.child = o.child and e.parent = o.parent;
    get diagnostics closed = row_count;
    cancelled := jobq_private.cancel_children(children, parents, _ends, held);
end
$$;

revoke all on function jobq_private.close_edges from public;

comment on function jobq_private.close_edges is
'Closes the edges of parents that have ended, and cancels children that can never run.';

-- Purpose: one way round in a graph, in words: a waits for b waits for a; a long one is cut, with ….
-- Invariant: waiting has of each job how many parents were left in the end; whoever has one
-- can be gone back from for ever. Reads nothing. Raises: nothing.
create or replace function jobq_private.cycle_among(arrows jobq_private.arrow[], names text[], waiting integer[])
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _parent integer[] := array_fill(0, array[cardinality(names)]);
    _arrow jobq_private.arrow;
    _seen integer[] := _parent;
    _path integer[] := '{}'::integer[];
    _at integer;
begin
    for _arrow in
        select a.* from unnest(arrows) as a where waiting[a.child] > 0 and waiting[a.parent] > 0
        order by a.child desc
    loop
        _parent[_arrow.child] := _arrow.parent;
        _at := _arrow.child;
    end loop;
    while _seen[_at] = 0 loop
        _path := _path || _at;
        _seen[_at] := cardinality(_path);
        _at := _parent[_at];
    end loop;
    _path := _path[_seen[_at]:] || _at;
    return (
        select string_agg(
            case when length(n.name) > 64 then left(n.name, 63) || '…' else n.name end,
            ' waits for ' order by p.n
        ) || case when cardinality(_path) > 20 then ' waits for …' else '' end
        from unnest(_path[:20]) with ordinality as p (place, n)
        cross join lateral (select names[p.place]) as n (name)
    );
end
$$;

revoke all on function jobq_private.cycle_among from public;

comment on function jobq_private.cycle_among is
'One way round in a graph, in words.';

-- Purpose: the open edges between these parents and any children, and these children and any
-- parents, behind which something is left to do.
-- Invariant: reads only; at most 1,000, as parallel arrays; null for none. A child that is not
-- blocked gets no more than edges closed of parents that have succeeded, which stays true. Who
-- does not see all queues must not take for gone what it cannot see. Children are looked up one
-- by one by their ids, whatever the statistics say. Raises: nothing.
create or replace function jobq_private.edges_to_settle(
    parents uuid[], children uuid[], queues text[], out over_children uuid[],
    out over_parents uuid[]
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
as $$
declare
    _below uuid[];
    _above uuid[];
    _failures text[];
begin
    select array_agg(e.child), array_agg(e.parent), array_agg(e.after_failure)
    into _below, _above, _failures
    from jobq_private.edge as e
    where e.child = any(edges_to_settle.children) and e.is_open;
    select array_agg(t.child), array_agg(t.parent) into over_children, over_parents
    from (
        select o.child, o.parent
        from (
            select e.child, e.parent, e.after_failure, p.ended_as
            from unnest(
                edges_to_settle.parents, jobq_private.ends_of(edges_to_settle.parents)
            ) as p (parent, ended_as)
            join jobq_private.edge as e on e.parent = p.parent and e.is_open
            where p.ended_as is not null
            union all
            select b.child, b.parent, b.after_failure, b.ended_as
            from unnest(_below, _above, _failures, jobq_private.ends_of(_above))
                as b (child, parent, after_failure, ended_as)
            where b.ended_as is not null
        ) as o
        left join lateral (
            select j.state from jobq_private.job as j where j.job_id = o.child offset 0
        ) as c on true
        where (
            o.ended_as = 'succeeded'
            or (
                c.state = 'blocked'
                and jobq_private.follows(o.ended_as, o.after_failure) is not null
            )
        )
        and (edges_to_settle.queues is null or o.ended_as <> 'gone')
        limit 1000
    ) as t;
end
$$;

revoke all on function jobq_private.edges_to_settle from public;

comment on function jobq_private.edges_to_settle is
'The open edges of parents that have ended.';

-- Purpose: take looks away behind which nothing is left to do, and put off the others, but for
-- a round that has moved something, and may have been too short for the rest.
-- Invariant: the caller has locked them, and knows whom they are about; those for batches that
-- somebody else holds stay. Raises: nothing.
create or replace function jobq_private.end_looks(
    looks tid[], parents uuid[], children uuid[], left_alone uuid[], queues text[],
    has_moved boolean
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    with pending as materialized (
        select l.ctid
        from jobq_private.look as l
        where l.ctid = any(end_looks.looks)
        and case l.about
            when 'parent' then l.id in (
                select u.id
                from unnest(
                    jobq_private.unsettled_parents(end_looks.parents, end_looks.queues)
                ) as u (id)
            )
            when 'child' then l.id in (
                select u.id
                from unnest(
                    jobq_private.unsettled_children(end_looks.children, end_looks.queues)
                ) as u (id)
            )
            else l.id = any(end_looks.left_alone)
            or jobq_private.is_batch_due(l.id, end_looks.queues)
        end
    ),
    kept as (
        update jobq_private.look as l
        set look_at = clock_timestamp() + least(
            greatest(clock_timestamp() - l.created_at, interval '10 ms'), interval '1 s'
        )
        from pending as p
        where l.ctid = p.ctid and not end_looks.has_moved
    )
    delete from jobq_private.look as l
    where l.ctid = any(end_looks.looks) and l.ctid not in (select p.ctid from pending as p);
end
$$;

revoke all on function jobq_private.end_looks from public;

comment on function jobq_private.end_looks is
'Takes looks away behind which nothing is left to do.';

-- Purpose: let new jobs become members of these batches.
-- Invariant: who adds holds the lock of the batch shared until the commit, and then looks
-- whether it has ended; resolve() ends a batch only with the lock for itself. So no batch
-- ends while a member is on its way. A transaction with one snapshot cannot see an end since:
-- it locks the batch's row, and fails to serialize. Raises: JQ001, JQ002, 40001.
-- Never: NULL_ARGUMENT.
create or replace function jobq_private.enter_batches(batch_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _batching constant integer := jobq_private.lock_class('batching');
    _batch_id uuid;
    _batch jobq_private.batch;
begin
    for _batch_id in
        select distinct b.batch_id from unnest(enter_batches.batch_ids) as b (batch_id) order by 1
    loop
        perform pg_advisory_xact_lock_shared(_batching, hashtext(_batch_id::text));
        if current_setting('transaction_isolation') <> 'read committed' then
            perform from jobq_private.batch as b where b.batch_id = _batch_id for share;
        end if;
        _batch := jobq_private.find_batch(_batch_id);
        if _batch.ended_at is not null then
            perform jobq_private.raise_error('BATCH_ENDED', format(
                'batch_id %s ended at %s', _batch_id, _batch.ended_at
            ));
        end if;
    end loop;
end
$$;

revoke all on function jobq_private.enter_batches from public;

comment on function jobq_private.enter_batches is
'Lets new jobs become members of batches that have not ended.';

-- Purpose: what a blocked job waits for, down to the jobs that hold it up, and why those do not
-- run.
-- Invariant: reads only; looks at 1,000 jobs above it, and tells of the first five that
-- wait for none themselves. Raises: nothing.
-- Never: NULL_ARGUMENT, JOB_IS_RECURRING, JOB_NOT_FOUND.
create or replace function jobq_private.explain_blocked(job jobq.job)
returns table (reason text, explanation text)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _holder record;
begin
    return query
    select 'blocked', format(
        'waits for %s of %s jobs', count(*) filter (where e.is_open), count(*)
    )
    from jobq_private.edge as e
    where e.child = job.job_id
    having count(*) > 0;
    return query
    select 'blocked', format(
        'waits for the end of batch %s: %s of its members live, %s', b.batch_id,
        (select count(*) from jobq_private.job as m where m.batch_id = b.batch_id),
        case when b.sealed_at is null then 'not sealed' else 'sealed at ' || b.sealed_at end
    )
    from jobq_private.batch as b
    where b.batch_id::text = job.metadata ->> 'batch_id'
    and job.job_id in (b.on_success, b.on_end, b.on_first_death);
    for _holder in
        select h.job_id, h.state
        from jobq_private.holders(job.job_id) as h
        order by h.job_id
        limit 5
    loop
        return query
        select 'held_up', format(
            'job_id %s, %s', _holder.job_id,
            coalesce(
                j.kind || ': ' || h.reason || ', ' || h.explanation,
                j.kind, 'which is gone or cannot be seen'
            )
        )
        from (values (1)) as one (n)
        left join jobq.job as j on j.job_id = _holder.job_id and _holder.state is not null
        left join lateral (
            select x.* from jobq.explain(j.job_id) as x
            where j.job_id is not null limit 1
        ) as h on true;
    end loop;
end
$$;

revoke all on function jobq_private.explain_blocked from public;

comment on function jobq_private.explain_blocked is
'What a blocked job waits for, down to the jobs that hold it up.';

-- Purpose: a batch, or an error when there is none.
-- Invariant: reads only. Raises: 22004, JQ001.
create or replace function jobq_private.find_batch(batch_id uuid)
returns jobq_private.batch
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _batch jobq_private.batch;
begin
    if find_batch.batch_id is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'batch_id');
    end if;
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

revoke all on function jobq_private.find_batch from public;

comment on function jobq_private.find_batch is
'Returns a batch.';

-- Purpose: link new jobs to those that they wait for, and to the batches they belong to.
-- Invariant: locks no parent, which may run for long: a look is left, so that resolve() finds
-- after the commit what has ended meanwhile. Those that this very transaction has made, which
-- nobody else can hold, are marked as awaited, so that they leave a trace. job_ids is parallel to jobs; null for one that
-- was not made. Raises: 22004, 22023, JQ001, JQ002.
create or replace function jobq_private.follow(jobs jobq_private.new_job[], job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _parents uuid[];
    _missing uuid;
begin
    if not exists (
        select from unnest(follow.jobs) as j
        where j.after is not null or j.batch_id is not null
    ) then
        return;
    end if;
    perform jobq_private.enter_batches(array(
        select j.batch_id from unnest(follow.jobs) as j where j.batch_id is not null
    ));
    if exists (
        select from unnest(follow.jobs) as j
        cross join lateral unnest(j.after) as a (parent)
        where a.parent is null
    ) then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'a job_id in after');
    elsif exists (
        select from unnest(follow.jobs) as j where cardinality(j.after) > 100000
    ) then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'after must have at most 100000 jobs'
        );
    end if;

    insert into jobq_private.edge (child, parent, after_failure)
    select distinct i.job_id, a.parent, coalesce(j.after_failure, 'cancel')
    from unnest(follow.jobs) with ordinality as j
    join unnest(follow.job_ids) with ordinality as i (job_id, n) on i.n = j.ordinality
    cross join lateral unnest(j.after) as a (parent);
    _parents := array(
        select distinct a.parent
        from unnest(follow.jobs) as j
        cross join lateral unnest(j.after) as a (parent)
    );
    select p.parent into _missing
    from unnest(_parents, jobq_private.ends_of(_parents)) as p (parent, ended_as)
    where p.ended_as = 'gone'
    limit 1;
    if found then
        perform jobq_private.raise_error('JOB_NOT_FOUND', format('job_id %s', _missing));
    end if;
    update jobq_private.job as j
    set is_awaited = true
    where j.job_id = any(_parents) and j.created_at = now() and not j.is_awaited;
    insert into jobq_private.look (about, id)
    select 'child', i.job_id
    from unnest(follow.jobs) with ordinality as j
    join unnest(follow.job_ids) with ordinality as i (job_id, n) on i.n = j.ordinality
    where j.after is not null;
end
$$;

revoke all on function jobq_private.follow from public;

comment on function jobq_private.follow is
'Links new jobs to those that they wait for, and to their batches.';

-- Purpose: what follows for a blocked job when one that it waits for has ended: closes (this
-- one holds it up no more), dooms (it can never run), or null: it waits on.
-- Invariant: ended_as is null while the parent lives, gone when there is no trace of it. No SET
-- clause, so that it is inlined. Raises: nothing.
create or replace function jobq_private.follows(ended_as text, after_failure text)
returns text
language sql
immutable
parallel safe
security invoker
as $$
    select case
        when $1 is null then null
        when $1 = 'succeeded' or $2 = 'run' then 'closes'
        when $2 = 'cancel' or $1 = 'gone' then 'dooms'
    end
$$;

revoke all on function jobq_private.follows from public;

comment on function jobq_private.follows is
'What follows for a blocked job when one that it waits for has ended.';

-- Purpose: let redriven jobs that died because an event did not come in time wait for it anew.
-- Invariant: of each the wait that ended last is forgotten, which nobody has caught; those
-- that a handler went on from stay as they ended. Raises: nothing.
create or replace function jobq_private.forget_timeouts(job_ids uuid[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    delete from jobq_private.step as s
    using (
        select distinct on (t.job_id) t.job_id, t.name
        from jobq_private.step as t
        where t.job_id = any(forget_timeouts.job_ids)
        and t.name like 'event:%'
        and t.name not like 'event:sleep:%'
        and t.value ->> 'outcome' = 'timed_out'
        order by t.job_id, t.saved_at desc
    ) as l
    where s.job_id = l.job_id and s.name = l.name
$$;

revoke all on function jobq_private.forget_timeouts from public;

comment on function jobq_private.forget_timeouts is
'Lets redriven jobs wait anew for what did not come in time.';

-- Purpose: whether something may follow for a batch yet: it has not ended, or one of its jobs, that
-- was redriven since, waits to be called.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.goes_on(batch jobq_private.batch)
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select (goes_on.batch).ended_at is null or exists (
        select from jobq_private.job as c
        where c.job_id in (
            (goes_on.batch).on_success, (goes_on.batch).on_end, (goes_on.batch).on_first_death
        )
        and c.state = 'blocked'
    )
$$;

revoke all on function jobq_private.goes_on from public;

comment on function jobq_private.goes_on is
'Whether something may follow for a batch yet.';

-- Purpose: who waits for whom, by places: of the new jobs first, then of the others.
-- Invariant: among the others, only as far as one that is held up leads to one that is waited
-- for, so that check_arrows() sees every way round. Raises: nothing.
create or replace function jobq_private.graph_arrows(nodes jsonb, names text[], others uuid[], graph_id uuid)
returns jobq_private.arrow[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := cardinality(names);
    _arrows jobq_private.arrow[];
    _below jobq_private.arrow[];
begin
    with place as materialized (
        select n.name, n.place::integer as place
        from unnest(graph_arrows.names) with ordinality as n (name, place)
        union all
        select t.name, _size + o.place::integer
        from unnest(graph_arrows.others) with ordinality as o (job_id, place)
        left join jobq_private.node as d
            on d.job_id = o.job_id and d.graph_id = graph_arrows.graph_id
            and d.name <> all(graph_arrows.names)
        cross join lateral (
            select o.job_id::text as name union select d.name where d.name is not null
        ) as t
    ),
    given as materialized (
        select e.place::integer as place, e.node
        from jsonb_array_elements(graph_arrows.nodes) with ordinality as e (node, place)
    )
    select array_agg(row(w.child, w.parent)::jobq_private.arrow) into _arrows
    from (
        select g.place as child, p.place as parent
        from given as g
        cross join lateral jsonb_array_elements_text(
            coalesce(nullif(g.node -> 'after', 'null'), '[]')
        ) as a (name)
        join place as p on p.name = a.name
        union
        select p.place, g.place
        from given as g
        cross join lateral jsonb_array_elements_text(
            coalesce(nullif(g.node -> 'before', 'null'), '[]')
        ) as b (name)
        join place as p on p.name = b.name
    ) as w;
    if graph_arrows.others = '{}' or not exists (
        select from unnest(_arrows) as a where a.child > _size
    ) then
        return coalesce(_arrows, '{}');
    end if;
    select array_agg(row(_size + d.place, a.child)::jobq_private.arrow) into _below
    from (select distinct w.child from unnest(_arrows) as w where w.child > _size) as a
    cross join lateral jobq_private.tree(graph_arrows.others[a.child - _size], 'down') as t (job_id)
    join unnest(graph_arrows.others) with ordinality as d (job_id, place) on d.job_id = t.job_id
    where d.place <> a.child - _size;
    return _arrows || coalesce(_below, '{}');
end
$$;

revoke all on function jobq_private.graph_arrows from public;

comment on function jobq_private.graph_arrows is
'Who waits for whom in a graph, by places.';

-- Purpose: the edges between these jobs, for show_graph().
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.graph_edge_documents(job_ids uuid[])
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'parent_id', e.parent,
        'child_id', e.child,
        'after_failure', e.after_failure,
        'is_open', e.is_open
    ) order by e.parent, e.child), '[]')
    from jobq_private.edge as e
    where e.child = any(graph_edge_documents.job_ids)
    and e.parent = any(graph_edge_documents.job_ids)
$$;

revoke all on function jobq_private.graph_edge_documents from public;

comment on function jobq_private.graph_edge_documents is
'The edges between jobs, for show_graph().';

-- Purpose: for each of these jobs that is blocked, one that holds it up: at the end of open edges,
-- and waiting for no job itself; parallel to them, null for the others.
-- Invariant: reads only; looks at each edge among them once, and at none beyond.
-- Raises: nothing.
create or replace function jobq_private.holders_among(job_ids uuid[])
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := cardinality(job_ids);
    _arrows jobq_private.arrow[];
    _first integer[];
    _children integer[];
    _reached integer[];
    _holder integer[] := array_fill(null::integer, array[_size]);
    _child integer;
    _done integer := 0;
begin
    select array_agg(row(c.place, p.place)::jobq_private.arrow) into _arrows
    from unnest(holders_among.job_ids) with ordinality as c (job_id, place)
    join jobq_private.job as j on j.job_id = c.job_id and j.state = 'blocked'
    join jobq_private.edge as e on e.child = c.job_id and e.is_open
    join unnest(holders_among.job_ids) with ordinality as p (job_id, place) on p.job_id = e.parent;
    if _arrows is null then
        return array_fill(null::uuid, array[_size]);
    end if;
    _first := jobq_private.arrow_ends(_arrows, _size);
    _children := array(select a.child from unnest(_arrows) as a order by a.parent);
    _reached := array(
        select distinct a.parent from unnest(_arrows) as a
        except
        select a.child from unnest(_arrows) as a
    );
    foreach _child in array _reached loop
        _holder[_child] := _child;
    end loop;
    while _done < cardinality(_reached) loop
        _done := _done + 1;
        for _n in _first[_reached[_done]] + 1 .. _first[_reached[_done] + 1] loop
            _child := _children[_n];
            if _holder[_child] is null then
                _holder[_child] := _holder[_reached[_done]];
                _reached[cardinality(_reached) + 1] := _child;
            end if;
        end loop;
    end loop;
    return array(
        select holders_among.job_ids[h.place]
        from unnest(_holder) with ordinality as h (place, n)
        order by h.n
    );
end
$$;

revoke all on function jobq_private.holders_among from public;

comment on function jobq_private.holders_among is
'For each of these jobs that is blocked, one that holds it up.';

-- Purpose: jobs as nodes, for show_graph(), in the order of their ids.
-- Invariant: reads only; jobs that have gone are left out. Raises: nothing.
create or replace function jobq_private.graph_node_documents(job_ids uuid[])
returns jsonb
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'job_id', j.job_id,
        'name', n.name,
        'kind', j.kind,
        'queue', j.queue,
        'state', j.state,
        'attempts', j.attempts,
        'max_attempts', j.max_attempts,
        'created_at', j.created_at,
        'run_at', j.run_at,
        'started_at', j.claimed_at,
        'finished_at', j.finished_at,
        'error_code', case when j.state in ('dead', 'cancelled', 'retrying') then j.last_error_code end,
        'error', case when j.state in ('dead', 'cancelled', 'retrying') then j.last_error end,
        'batch_id', j.batch_id,
        'waits_for', case when j.state = 'blocked' then (
            select count(*) from jobq_private.edge as e where e.child = j.job_id and e.is_open
        ) else 0 end,
        'held_up_by', case when j.state = 'blocked' then g.held_up_by end
    ) order by j.job_id), '[]')
    from unnest(
        graph_node_documents.job_ids,
        jobq_private.holders_among(graph_node_documents.job_ids)
    ) as g (job_id, held_up_by)
    cross join lateral (
        select l.* from jobq.job as l where l.job_id = g.job_id and l.finished_at is null
        union all
        select a.* from jobq.job as a
        where a.job_id = g.job_id
        and a.finished_at >= jobq_private.id_time(g.job_id) - interval '1 day'
    ) as j
    left join jobq_private.node as n on n.job_id = j.job_id
$$;

revoke all on function jobq_private.graph_node_documents from public;

comment on function jobq_private.graph_node_documents is
'Jobs as nodes, for show_graph().';

-- Purpose: the jobs beyond new ones that these name in after and before: by ids, or by names
-- in the graph that they join.
-- Invariant: each must be there. A name of the new jobs goes before one of the graph.
-- Raises: 22023, JQ001.
create or replace function jobq_private.graph_others(nodes jsonb, names text[], graph_id uuid)
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _others uuid[];
    _given text[];
    _missing text;
    _taken text;
begin
    select n.name into _taken
    from jobq_private.node as n
    where n.graph_id = graph_others.graph_id and n.name = any(graph_others.names)
    limit 1;
    if found then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', format('name %s is in the graph already', _taken)
        );
    end if;
    with named as (
        select distinct w.name
        from jsonb_array_elements(graph_others.nodes) as e (node)
        cross join lateral (
            select a.name from jsonb_array_elements_text(
                coalesce(nullif(e.node -> 'after', 'null'), '[]')
            ) as a (name)
            union all
            select b.name from jsonb_array_elements_text(
                coalesce(nullif(e.node -> 'before', 'null'), '[]')
            ) as b (name)
        ) as w
        except
        select n.name from unnest(graph_others.names) as n (name)
    ),
    found as (
        select d.name, coalesce(n.job_id, case
            when d.name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then d.name::uuid
        end) as job_id
        from named as d
        left join jobq_private.node as n
            on n.graph_id = graph_others.graph_id and n.name = d.name
    )
    select array_agg(f.job_id), array_agg(f.name) into _others, _given from found as f;
    select min(o.name) into _missing
    from unnest(_others, _given, jobq_private.ends_of(_others)) as o (job_id, name, ended_as)
    where o.job_id is null or o.ended_as = 'gone';
    if _missing is not null then
        perform jobq_private.raise_error(
            'JOB_NOT_FOUND', format('job_id %s: neither a job nor a name in the graph', _missing)
        );
    end if;
    return array(select distinct o.job_id from unnest(_others) as o (job_id));
end
$$;

revoke all on function jobq_private.graph_others from public;

comment on function jobq_private.graph_others is
'The jobs that a graph names beyond its own new ones.';

-- Purpose: add the graph of a schedule behind the job of a slot.
-- Invariant: what waits for no job of the graph waits for that one. Nothing that a new job may
-- be refused for is checked again. Raises: nothing.
-- Never: NULL_ARGUMENT, INVALID_ARGUMENT, GRAPH_CYCLE, JOB_IS_RECURRING, JOB_NOT_FOUND, BATCH_NOT_FOUND,
-- BATCH_ENDED, ILLEGAL_STATE, PAYLOAD_TOO_LARGE, PAYLOAD_TOO_DEEP, PAYLOAD_INVALID, QUEUE_FULL.
create or replace function jobq_private.hang_graph(job_id uuid, graph jsonb)
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select a.job_id
    from jobq_private.add_graph(
        jsonb_build_object('jobs', (
            select jsonb_agg(case
                when coalesce(nullif(n.node -> 'after', 'null'), '[]') = '[]'
                then n.node || jsonb_build_object('after', array[hang_graph.job_id])
                else n.node
            end order by n.place)
            from jsonb_array_elements(hang_graph.graph -> 'jobs')
                with ordinality as n (node, place)
        )),
        hang_graph.job_id, true
    ) as a
$$;

revoke all on function jobq_private.hang_graph from public;

comment on function jobq_private.hang_graph is
'Adds the graph of a schedule behind the job of a slot.';

-- Purpose: keep the batches of ended jobs, that are about to be redriven, from ending.
-- Invariant: as enter_batches(), the lock of each is held shared until the commit; one that has
-- ended already is no obstacle. Raises: nothing.
create or replace function jobq_private.hold_batches(members uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _batching constant integer := jobq_private.lock_class('batching');
    _since constant timestamptz := (
        select jobq_private.id_time(m.job_id) - interval '1 day'
        from unnest(hold_batches.members) as m (job_id)
        order by m.job_id
        limit 1
    );
    _batch_id uuid;
begin
    for _batch_id in
        select distinct a.batch_id
        from jobq_private.job_archive as a
        where a.job_id = any(hold_batches.members)
        and a.finished_at >= _since
        and a.batch_id is not null
        order by a.batch_id
    loop
        perform pg_advisory_xact_lock_shared(_batching, hashtext(_batch_id::text));
    end loop;
end
$$;

revoke all on function jobq_private.hold_batches from public;

comment on function jobq_private.hold_batches is
'Keeps the batches of jobs that are redriven from ending.';

-- Purpose: lock blocked jobs that are to wait for new ones as well.
-- Invariant: in the order of ids; resolve() leaves them alone until the commit, and then sees
-- that they wait. Raises: JQ002.
create or replace function jobq_private.hold_children(job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _free uuid;
begin
    if job_ids = '{}' then
        return;
    end if;
    perform from jobq_private.job as j
    where j.job_id = any(hold_children.job_ids)
    order by j.job_id
    for no key update;
    select c.job_id into _free
    from unnest(hold_children.job_ids) as c (job_id)
    where not exists (
        select from jobq_private.job as j where j.job_id = c.job_id and j.state = 'blocked'
    )
    or exists (
        select from jobq_private.batch as b
        where c.job_id in (b.on_success, b.on_end, b.on_first_death)
    )
    limit 1;
    if found then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s; only a blocked job, and none that a batch calls, can come to wait',
            _free,
            jobq_private.state_of(_free)
        ));
    end if;
end
$$;

revoke all on function jobq_private.hold_children from public;

comment on function jobq_private.hold_children is
'Locks blocked jobs that are to wait for new ones as well.';

-- Purpose: the state of a job, live or archived; null when there is none.
-- Invariant: reads only, what get_job() would find. Raises: nothing.
create or replace function jobq_private.state_of(job_id uuid)
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(
        (select j.state from jobq_private.job as j where j.job_id = state_of.job_id),
        (
            select a.state
            from (
                select jobq_private.id_time(state_of.job_id) - interval '1 day' as since offset 0
            ) as t
            join jobq_private.job_archive as a
                on a.job_id = state_of.job_id and a.finished_at >= t.since
            order by a.finished_at desc
            limit 1
        )
    )
$$;

revoke all on function jobq_private.state_of from public;

comment on function jobq_private.state_of is
'The state of a job; null when there is none.';

-- Purpose: the jobs that hold a blocked one up: at the end of open edges, and waiting for no job
-- themselves; such a one may wait for the end of a batch.
-- Invariant: reads only; looks at 1,000 jobs above it. Raises: nothing.
create or replace function jobq_private.holders(blocked uuid)
returns table (job_id uuid, state text)
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with recursive above as (
        select holders.blocked as job_id
        union
        select e.parent
        from above as a
        join jobq_private.edge as e on e.child = a.job_id and e.is_open
    )
    select h.job_id, s.state
    from (select a.job_id from above as a limit 1000) as h
    cross join lateral jobq_private.state_of(h.job_id) as s (state)
    where h.job_id <> holders.blocked
    and (
        s.state is distinct from 'blocked'
        or not exists (
            select from jobq_private.edge as e where e.child = h.job_id and e.is_open
        )
    )
$$;

revoke all on function jobq_private.holders from public;

comment on function jobq_private.holders is
'The jobs that hold a blocked one up.';

-- Purpose: whether something is left to do for a batch: it could end, or call about a death.
-- Invariant: reads only. Who does not see all queues leaves batches to somebody else, since
-- members may be in any. Raises: nothing.
create or replace function jobq_private.is_batch_due(batch_id uuid, queues text[])
returns boolean
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select is_batch_due.queues is not null or exists (
        select from jobq_private.batch as b
        where b.batch_id = is_batch_due.batch_id
        and jobq_private.goes_on(b)
        and (
            (b.sealed_at is not null and not exists (
                select from jobq_private.job as j where j.batch_id = b.batch_id
            ))
            or (
                exists (
                    select from jobq_private.job as c
                    where c.job_id = b.on_first_death and c.state = 'blocked'
                )
                and exists (
                    select from jobq_private.job_archive as a
                    where a.batch_id = b.batch_id and a.state = 'dead'
                )
            )
        )
    )
$$;

revoke all on function jobq_private.is_batch_due from public;

comment on function jobq_private.is_batch_due is
'Whether something is left to do for a batch.';

-- Purpose: whether new jobs stand between two that are blocked already, so that others who do the
-- same could close a ring with them; if so, wait until these have committed.
-- Invariant: one at a time does this, until its commit; the caller then looks at the arrows anew.
-- A transaction with one snapshot would not see what they have added. Raises: 22023.
create or replace function jobq_private.join_alone(
    arrows jobq_private.arrow[], others uuid[], size integer
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from unnest(arrows) as a where a.child > size)
        or not exists (
            select from unnest(arrows) as a
            join jobq_private.job as j on j.job_id = others[a.parent - size]
            where a.parent > size and a.child <= size and j.state = 'blocked'
        )
    then
        return false;
    elsif current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'jobs come between two that are blocked only at the isolation level read committed'
        );
    end if;
    perform pg_advisory_xact_lock(jobq_private.lock_class('joining'), 0);
    return true;
end
$$;

revoke all on function jobq_private.join_alone from public;

comment on function jobq_private.join_alone is
'Whether new jobs stand between two that are blocked; then nobody else adds such ones meanwhile.';

-- Purpose: note that jobs have ended for which others wait, or which belong to batches.
-- Invariant: takes no lock that another could wait for, so that the caller's transaction may
-- last. claim() resolves what its own transaction has left (jobq.looks); the workers that
-- are woken, or maintain(), the rest. Raises: nothing.
create or replace function jobq_private.leave_looks(endings jobq_private.ending[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into jobq_private.look (about, id)
    select 'parent', e.job_id from unnest(leave_looks.endings) as e where e.is_awaited
    union all
    select distinct 'batch', e.batch_id
    from unnest(leave_looks.endings) as e
    where e.batch_id is not null;
    perform set_config('jobq.looks', 'on', true);
    perform jobq_private.wake(array(
        select distinct e.queue from unnest(leave_looks.endings) as e
    ));
end
$$;

revoke all on function jobq_private.leave_looks from public;

comment on function jobq_private.leave_looks is
'Notes that jobs have ended for which others wait, or which belong to batches.';

-- Purpose: have somebody look what redriven jobs that are blocked wait for.
-- Invariant: none is needed for who waits only for others that go back with it: they count as
-- awaited, and cannot end before the commit. Raises: nothing.
create or replace function jobq_private.look_again(blocked uuid[], redriven uuid[])
returns void
language sql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with batch as materialized (
        select b.*
        from jobq_private.batch as b
        where b.on_success = any(look_again.blocked)
        or b.on_end = any(look_again.blocked)
        or b.on_first_death = any(look_again.blocked)
    )
    insert into jobq_private.look (about, id)
    select 'child', w.job_id
    from unnest(look_again.blocked) as w (job_id)
    where not exists (
        select from batch as b where w.job_id in (b.on_success, b.on_end, b.on_first_death)
    )
    and (
        exists (
            select from jobq_private.edge as e
            where e.child = w.job_id and e.is_open and e.parent <> all(look_again.redriven)
        )
        or not exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    )
    union all
    select 'batch', b.batch_id from batch as b
$$;

revoke all on function jobq_private.look_again from public;

comment on function jobq_private.look_again is
'Has somebody look what redriven jobs wait for.';

-- Purpose: the queues whose jobs whoever has logged in may release; null for all.
-- Invariant: while queue grants are enforced, who holds some queues sees only their jobs, and
-- must not take what it cannot see for gone. Raises: nothing.
create or replace function jobq_private.worked_queues()
returns text[]
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select case
        when row_security_active('jobq_private.job') and not coalesce(h.worked && '{*}', false)
        then coalesce(h.worked, '{}')
    end
    from jobq_private.held_queue as h
$$;

revoke all on function jobq_private.worked_queues from public;

comment on function jobq_private.worked_queues is
'The queues whose jobs whoever has logged in may release; null for all.';

-- Purpose: the jobs that finished on a day (UTC) past retention and are to be kept: a job that
-- waited for it, or for one that did, is live, or not that old itself; or its batch has not ended.
-- Invariant: reads only, each edge below the day's jobs once down and once up, however deep the
-- trees are. Who does not see all queues may not see who needs a job, and leaves each that others
-- may need. Raises: nothing.
create or replace function jobq_private.needed_jobs(day date, oldest timestamptz)
returns setof uuid
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
    with recursive below as (
        select e.child
        from jobq_private.job_archive as a
        join jobq_private.edge as e on e.parent = a.job_id
        where a.finished_at >= needed_jobs.day and a.finished_at < needed_jobs.day + 1
        union
        select e.child
        from below as b
        join jobq_private.edge as e on e.parent = b.child
    ),

    needed as (
        select b.child as job_id
        from below as b
        where jobq_private.worked_queues() is not null
        or exists (select from jobq_private.job as j where j.job_id = b.child)
        or exists (
            select from jobq_private.job_archive as a
            where a.job_id = b.child and a.finished_at >= needed_jobs.oldest
        )
        union
        select e.parent
        from needed as n
        join jobq_private.edge as e on e.child = n.job_id
    )

    select a.job_id
    from jobq_private.job_archive as a
    where a.finished_at >= needed_jobs.day and a.finished_at < needed_jobs.day + 1
    and (
        a.job_id in (select n.job_id from needed as n)
        or (a.batch_id is not null and jobq_private.worked_queues() is not null)
        or exists (
            select from jobq_private.batch as b
            where b.batch_id = a.batch_id and b.ended_at is null
        )
    )
$$;

revoke all on function jobq_private.needed_jobs from public;

comment on function jobq_private.needed_jobs is
'The jobs that finished on a day past retention and are to be kept for others.';

-- Purpose: until when a finished job that its kind keeps no longer is to be kept all the same: for
-- a while yet when a job that waited for it is live, or its batch has not ended; else as long as
-- such a job is kept; infinity stands for the retention of all, null means that nobody needs it.
-- Invariant: reads only. Raises: nothing.
create or replace function jobq_private.needed_until(
    job_id uuid, batch_id uuid, finished_at timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return case
        when exists (
            select from jobq_private.edge as e
            join jobq_private.job as j on j.job_id = e.child
            where e.parent = needed_until.job_id
        )
        or exists (
            select from jobq_private.batch as b
            where b.batch_id = needed_until.batch_id and b.ended_at is null
        )
        then now() + (now() - needed_until.finished_at) / 8
        else (
            select max(coalesce(a.prune_at, 'infinity'))
            from jobq_private.edge as e
            cross join lateral (
                select c.prune_at from jobq_private.job_archive as c
                where c.job_id = e.child
                and c.finished_at >= jobq_private.id_time(e.child) - interval '1 day'
            ) as a
            where e.parent = needed_until.job_id
        )
    end;
end
$$;

revoke all on function jobq_private.needed_until from public;

comment on function jobq_private.needed_until is
'Until when others need a finished job that its kind keeps no longer.';

-- Purpose: the jobs of a graph as new jobs, without what they wait for.
-- Invariant: reads nothing. Raises: 22004, 22023.
create or replace function jobq_private.node_jobs(nodes jsonb)
returns jobq_private.new_job[]
language sql
stable
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select jobq_private.read_jobs(
        (
            select jsonb_agg(n.node - '{name,after,before}'::text[] order by n.place)
            from jsonb_array_elements(node_jobs.nodes) with ordinality as n (node, place)
        ),
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,expires_at,after_failure,batch_id}'
    )
$$;

revoke all on function jobq_private.node_jobs from public;

comment on function jobq_private.node_jobs is
'The jobs of a graph as new jobs.';

-- Purpose: forget what jobs that have gone waited for, and batches past retention.
-- Invariant: the caller sees all queues: what it does not see counts as gone. A bounded number of
-- rows at a call. Returns how many went. Raises: nothing.
create or replace function jobq_private.prune_edges(before timestamptz, max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _gone bigint;
    _rows bigint;
begin
    delete from jobq_private.edge as e
    where e.child in (
        select distinct o.child
        from jobq_private.edge as o
        where o.child < jobq_private.id_floor(prune_edges.before)
        and not exists (select from jobq_private.job as j where j.job_id = o.child)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.child)
        order by o.child
        limit prune_edges.max_rows
    );
    get diagnostics _gone = row_count;
    _gone := _gone + jobq_private.prune_nodes(prune_edges.before, prune_edges.max_rows);
    delete from jobq_private.batch as b
    where b.batch_id in (
        select o.batch_id
        from jobq_private.batch as o
        where o.opened_at < prune_edges.before and o.ended_at < prune_edges.before
        limit prune_edges.max_rows
    );
    get diagnostics _rows = row_count;
    return _gone + _rows;
end
$$;

revoke all on function jobq_private.prune_edges from public;

comment on function jobq_private.prune_edges is
'Forgets what jobs that have gone waited for, and batches past retention.';

-- Purpose: forget the names in graphs of jobs that have gone.
-- Invariant: a bounded number of rows at a call. Returns how many went. Raises: nothing.
create or replace function jobq_private.prune_nodes(before timestamptz, max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _gone bigint;
begin
    delete from jobq_private.node as n
    where n.job_id in (
        select o.job_id
        from jobq_private.node as o
        where o.job_id < jobq_private.id_floor(prune_nodes.before)
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.job_id)
        order by o.job_id
        limit prune_nodes.max_rows
    );
    get diagnostics _gone = row_count;
    return _gone;
end
$$;

revoke all on function jobq_private.prune_nodes from public;

comment on function jobq_private.prune_nodes is
'Forgets the names in graphs of jobs that have gone.';

-- Purpose: forget the steps and waits of jobs that have gone, and events past retention;
-- release those that waited for what a transaction with one snapshot has emitted.
-- Invariant: a bounded number of rows at a call. An event for which a job waits stays, and
-- so do the steps of a job that can still be redriven, and the signals to it. Who does not see all queues leaves what
-- belongs to none to others. Returns how many rows went.
-- Raises: nothing.
create or replace function jobq_private.prune_workflows(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _before constant timestamptz := now() - (select g.retention from jobq_private.setting as g);
    _gone bigint;
    _rows bigint;
    _late jobq_private.late_event;
    _queues constant text[] := jobq_private.worked_queues();
begin
    for _late in
        delete from jobq_private.late_event as l
        where l.late_event_id in (
            select e.late_event_id
            from jobq_private.late_event as e
            where _queues is null
            or exists (select from jobq_private.job as j where j.job_id = e.job_id)
            order by e.late_event_id
            limit prune_workflows.max_rows
            for update skip locked
        )
        returning l.*
    loop
        if exists (
            select from jobq_private.event as e
            where e.event = _late.event and e.job_id in (_late.job_id, _all)
        ) then
            perform jobq_private.release_waiters(_late.event, _late.job_id);
        end if;
    end loop;

    delete from jobq_private.event as e
    where (e.event, e.job_id) in (
        select o.event, o.job_id
        from jobq_private.event as o
        where o.emitted_at < _before
        and not exists (
            select from jobq_private.waiter as w
            where w.event = o.event and o.job_id in (w.job_id, _all)
        )
        and (o.job_id = _all or jobq_private.state_of(o.job_id) is null)
        order by o.emitted_at
        limit prune_workflows.max_rows
    );
    get diagnostics _gone = row_count;

    delete from jobq_private.waiter as w
    where (w.job_id, w.event) in (
        select o.job_id, o.event
        from jobq_private.waiter as o
        where o.since < now() - interval '1 day'
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        order by o.since
        limit prune_workflows.max_rows
    );
    get diagnostics _rows = row_count;
    _gone := _gone + _rows;

    delete from jobq_private.step as s
    where s.job_id in (
        select distinct o.job_id
        from jobq_private.step as o
        where o.job_id < jobq_private.id_floor(_before)
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.job_id)
        order by o.job_id
        limit prune_workflows.max_rows
    );
    get diagnostics _rows = row_count;
    _gone := _gone + _rows;
    if _queues is null then
        _gone := _gone + jobq_private.prune_edges(_before, prune_workflows.max_rows);
    end if;
    return _gone;
end
$$;

revoke all on function jobq_private.prune_workflows from public;

comment on function jobq_private.prune_workflows is
'Forgets the steps and waits of jobs that have gone, and events past their retention.';

-- Purpose: queue those of these blocked jobs that wait for nothing any more.
-- Invariant: the caller has their rows; a new snapshot shows the edges that others have
-- closed. They are due as of this moment, so that no claim that began before their parents'
-- ends takes them, or at the time that they were given. Returns how many.
-- Raises: nothing.
create or replace function jobq_private.release_children(held uuid[])
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _released uuid[];
    _queues text[];
begin
    with released as (
        update jobq_private.job as j
        set state = 'queued', run_at = greatest(j.run_at, clock_timestamp())
        where j.job_id = any(release_children.held)
        and j.state = 'blocked'
        and not exists (
            select from jobq_private.edge as e where e.child = j.job_id and e.is_open
        )
        returning j.job_id, j.queue
    )
    select array_agg(r.job_id), array_agg(distinct r.queue) into _released, _queues
    from released as r;
    if _released is null then
        return 0;
    end if;
    perform jobq_private.call_lanes(_released);
    perform jobq_private.wake(_queues);
    return cardinality(_released);
end
$$;

revoke all on function jobq_private.release_children from public;

comment on function jobq_private.release_children is
'Queues blocked jobs that wait for nothing any more.';

-- Purpose: make the jobs that wait for an event due now, and wake their queues.
-- Invariant: rows are locked in the order of their ids. Those that run, retry or have ended
-- are left alone: they look for the event when they come to it. The rows of waiters stay
-- until the jobs have looked. Returns how many jobs became due. Raises: nothing.
create or replace function jobq_private.release_waiters(event text, job_id uuid)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _waiting constant uuid[] := array(
        select w.job_id
        from jobq_private.waiter as w
        where w.event = release_waiters.event
        and release_waiters.job_id in (_all, w.job_id)
        order by w.job_id
    );
    _queues text[];
    _released bigint;
    _has_lanes boolean;
begin
    if _waiting = '{}' then
        return 0;
    end if;
    with held as materialized (
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_waiting) and j.state = 'queued' and j.run_at > clock_timestamp()
        order by j.job_id
        for no key update of j
    ),
    released as (
        update jobq_private.job as j
        set run_at = clock_timestamp()
        from held as h
        where j.job_id = any(_waiting) and j.job_id = h.job_id
        returning j.queue, j.lane_id
    )
    select count(*), array_agg(distinct r.queue), bool_or(r.lane_id is not null)
    into _released, _queues, _has_lanes
    from released as r;
    if _has_lanes then
        perform jobq_private.call_lanes(_waiting);
    end if;
    if _released > 0 then
        perform jobq_private.wake(_queues);
    end if;
    return _released;
end
$$;

revoke all on function jobq_private.release_waiters from public;

comment on function jobq_private.release_waiters is
'Makes the jobs that wait for an event due now.';

-- Purpose: do what follows from the ends of jobs: release their children or cancel them, end
-- batches.
-- Invariant: waits for no lock. What is locked, or not to be seen, is left with its look, at
-- which somebody looks again after 10 ms, later after up to a second. A look is taken away
-- only after a new snapshot has shown that nothing is left to do, by who has the rows of
-- children and batches; so whoever is killed strands nothing, and what two do at once is done
-- once. A repeatable snapshot is too old for that. Bounded: no round begins after 200 ms, or while
-- nothing has moved after patience; what there was no time for stays due. Tells claim() by
-- jobq.resolved that this statement has had its share. Batches are left to who works all queues,
-- as members may be in any. Returns how many jobs were released or cancelled. Raises: nothing.
create or replace function jobq_private.resolve(
    max_looks integer default 1000, patience interval default '200 ms'
)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
declare
    _queues constant text[] := jobq_private.worked_queues();
    _began constant timestamptz := clock_timestamp();
    _looks tid[];
    _parents uuid[];
    _children uuid[];
    _batches uuid[];
    _left uuid[] := array[]::uuid[];
    _in_batches bigint;
    _moved bigint := 0;
    _now bigint;
    _closed bigint;
begin
    perform set_config('jobq.looks', '', true);
    perform set_config('jobq.resolved', statement_timestamp()::text, true);
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    loop
        select
            array_agg(l.ctid),
            coalesce(array_agg(l.id) filter (where l.about = 'parent'), '{}'),
            coalesce(array_agg(l.id) filter (where l.about = 'child'), '{}'),
            array_agg(distinct l.id) filter (where l.about = 'batch')
        into _looks, _parents, _children, _batches
        from (
            select k.ctid, k.about, k.id
            from jobq_private.look as k
            where k.look_at <= clock_timestamp()
            order by k.look_id
            limit resolve.max_looks
            for update skip locked
        ) as l;
        exit when _looks is null;
        _now := 0;
        _closed := 0;
        if _children <> '{}' then
            perform jobq_private.await_parents(_children, _queues);
        end if;
        if _children <> '{}' or _parents <> '{}' then
            select s.moved, s.closed into _now, _closed
            from jobq_private.settle_edges(_parents, _children, _queues) as s;
        end if;
        if _batches is not null and _queues is null then
            select s.moved, s.left_alone into _in_batches, _left
            from jobq_private.settle_batches(_batches) as s;
            _now := _now + _in_batches;
        end if;
        perform jobq_private.end_looks(
            _looks, _parents, _children, _left, _queues, _now + _closed > 0
        );
        _moved := _moved + _now;
        exit when clock_timestamp() - _began > case
            when _moved = 0 then resolve.patience else interval '200 ms'
        end;
    end loop;
    return _moved;
end
$$;

revoke all on function jobq_private.resolve from public;

comment on function jobq_private.resolve is
'Releases or cancels the children of jobs that have ended, and ends batches.';

-- Purpose: call back about the first death in these batches, and about their ends.
-- Invariant: whoever has the batch's row and its lock, which keeps new members out, looks with
-- a new snapshot whether a member lives. Returns how many jobs moved, and the batches that
-- somebody else holds, who may not see all ends. Raises: nothing.
create or replace function jobq_private.settle_batches(
    batch_ids uuid[], out moved bigint, out left_alone uuid[]
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _batching constant integer := jobq_private.lock_class('batching');
    _batch_id uuid;
    _batch jobq_private.batch;
    _outcome text;
begin
    moved := 0;
    left_alone := '{}';
    foreach _batch_id in array settle_batches.batch_ids loop
        select b.* into _batch
        from jobq_private.batch as b
        where b.batch_id = _batch_id and jobq_private.goes_on(b)
        for update skip locked;
        if not found then
            left_alone := left_alone || array(
                select b.batch_id
                from jobq_private.batch as b
                where b.batch_id = _batch_id and jobq_private.goes_on(b)
            );
            continue;
        end if;
        if _batch.on_first_death is not null and exists (
            select from jobq_private.job_archive as a
            where a.batch_id = _batch_id and a.state = 'dead'
        ) then
            moved := moved + jobq_private.call_back(_batch.on_first_death, 'queued');
        end if;
        continue when _batch.sealed_at is null
            or not pg_try_advisory_xact_lock(_batching, hashtext(_batch_id::text));
        continue when exists (
            select from jobq_private.job as j where j.batch_id = _batch_id
        );
        _outcome := case
            when _batch.has_lost or exists (
                select from jobq_private.job_archive as a
                where a.batch_id = _batch_id and a.state in ('dead', 'cancelled')
            )
            then 'cancelled' else 'queued'
        end;
        moved := moved
            + jobq_private.call_back(
                _batch.on_success, _outcome,
                format('not all jobs of batch %s have succeeded', _batch_id)
            )
            + jobq_private.call_back(_batch.on_end, 'queued')
            + jobq_private.call_back(
                _batch.on_first_death, 'cancelled', format('no job of batch %s is dead', _batch_id)
            );
        update jobq_private.batch as b
        set ended_at = coalesce(b.ended_at, clock_timestamp())
        where b.batch_id = _batch_id
        and not exists (
            select from jobq_private.job as c
            where c.job_id in (b.on_success, b.on_end, b.on_first_death)
            and c.state = 'blocked'
        );
    end loop;
end
$$;

revoke all on function jobq_private.settle_batches from public;

comment on function jobq_private.settle_batches is
'Calls back about the first death in batches, and about their ends.';

-- Purpose: close the edges of parents that have ended, then release the children that have
-- none left, and cancel those that can never run.
-- Invariant: whoever has a child's row locked, and nobody else, closes its edges, as the parents
-- are seen since, and then looks, with a new snapshot, whether any is left. So the last of two
-- parents releases it, and one of them only. Bounded: 1,000 edges at a call. Returns how many
-- jobs moved, and how many edges were closed. Raises: nothing.
create or replace function jobq_private.settle_edges(
    parents uuid[], children uuid[], queues text[], out moved bigint, out closed bigint
)
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _touched uuid[];
    _over uuid[];
    _held uuid[];
begin
    moved := 0;
    closed := 0;
    select t.over_children, t.over_parents into _touched, _over
    from jobq_private.edges_to_settle(
        settle_edges.parents, settle_edges.children, settle_edges.queues
    ) as t;
    _held := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(_touched || settle_edges.children)
        and j.state = 'blocked'
        and (settle_edges.queues is null or j.queue = any(settle_edges.queues))
        order by j.job_id
        for update skip locked
    );
    if _over is not null then
        select c.cancelled, c.closed into moved, closed
        from jobq_private.close_edges(_touched, _over, _held, settle_edges.queues) as c;
    end if;
    moved := moved + jobq_private.release_children(_held);
end
$$;

revoke all on function jobq_private.settle_edges from public;

comment on function jobq_private.settle_edges is
'Closes the edges of parents that have ended, and releases or cancels their children.';

-- Purpose: how a wait of a job for an event has ended: what is recorded, what has come, or
-- that its time is over; null while it goes on.
-- Invariant: what is found is recorded as a step, so that every later attempt gets the
-- same. A signal for the job goes before an event of that name. Under one snapshot, what another
-- session has recorded since cannot be seen, and it fails to serialize. Raises: 40001.
create or replace function jobq_private.settle_wait(job_id uuid, attempt integer, event text)
returns jsonb
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _end jsonb;
begin
    select s.value into _end
    from jobq_private.step as s
    where s.job_id = settle_wait.job_id and s.name = 'event:' || settle_wait.event;
    if found then
        return _end;
    end if;

    select jsonb_build_object('outcome', 'arrived', 'payload', e.payload) into _end
    from jobq_private.event as e
    where e.event = settle_wait.event and e.job_id in (settle_wait.job_id, _all)
    order by e.job_id = _all
    limit 1;
    if not found then
        select jsonb_build_object('outcome', 'timed_out', 'payload', null) into _end
        from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id
        and w.event = settle_wait.event
        and w.deadline <= clock_timestamp();
    end if;
    if _end is not null then
        insert into jobq_private.step (job_id, name, value, attempt)
        values (settle_wait.job_id, 'event:' || settle_wait.event, _end, settle_wait.attempt)
        on conflict on constraint step_pkey do nothing;
        delete from jobq_private.waiter as w
        where w.job_id = settle_wait.job_id and w.event = settle_wait.event;
    end if;
    return _end;
end
$$;

revoke all on function jobq_private.settle_wait from public;

comment on function jobq_private.settle_wait is
'How a wait of a job for an event has ended; null while it goes on.';

-- Purpose: keep an event, and release those that wait for it.
-- Invariant: the first one stays; true for that one alone. The emitter holds E (shared)
-- until it commits, before it looks for waiters; a waiter stands in the table before it
-- tries E (exclusively, wait_for()). So one of the two always sees the other. A transaction
-- with one snapshot cannot see who began to wait since: it leaves a row for maintain().
-- Raises: nothing.
create or replace function jobq_private.store_event(event text, job_id uuid, payload jsonb)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _emitting constant integer := jobq_private.lock_class('emitting');
begin
    perform pg_advisory_xact_lock_shared(_emitting, hashtext(store_event.event) & 1023);
    insert into jobq_private.event (event, job_id, payload)
    values (store_event.event, store_event.job_id, store_event.payload)
    on conflict on constraint event_pkey do nothing;
    if not found then
        return false;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        insert into jobq_private.late_event (event, job_id)
        values (store_event.event, store_event.job_id);
    end if;
    perform jobq_private.release_waiters(store_event.event, store_event.job_id);
    return true;
end
$$;

revoke all on function jobq_private.store_event from public;

comment on function jobq_private.store_event is
'Keeps an event unless it is known already, and releases those that wait for it.';

-- Purpose: store the jobs of a graph, with what they wait for.
-- Invariant: arrows were checked. A look is left for those that wait for others than these,
-- as follow() does. Those of a schedule, which wait for its job alone, are of that job's slot.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
create or replace function jobq_private.store_nodes(
    nodes jsonb, names text[], ids uuid[], others uuid[], arrows jobq_private.arrow[],
    graph_id uuid, is_checked boolean
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _size constant integer := cardinality(ids);
    _all constant uuid[] := ids || others;
    _jobs jobq_private.new_job[];
    _slot_at constant timestamptz := (
        select j.slot_at
        from jobq_private.job as j
        where store_nodes.is_checked and j.job_id = others[1]
    );
    _named integer;
begin
    _jobs := jobq_private.node_jobs(nodes);
    if not is_checked then
        perform jobq_private.check_new_jobs(_jobs);
    end if;
    perform jobq_private.store_jobs(
        array(
            select jobq_private.as_node(
                j, case when w.child is not null then store_nodes.graph_id end,
                p.parent is not null, _slot_at
            )
            from unnest(_jobs) as j
            left join (
                select distinct a.child from unnest(store_nodes.arrows) as a
            ) as w on w.child = j.ordinal
            left join (
                select distinct a.parent from unnest(store_nodes.arrows) as a
            ) as p on p.parent = j.ordinal
            order by j.ordinal
        ),
        ids, is_checked
    );
    insert into jobq_private.node (job_id, graph_id, name)
    select n.job_id, store_nodes.graph_id, n.name
    from unnest(ids, names) as n (job_id, name)
    order by n.name
    on conflict on constraint node_name_key do nothing;
    get diagnostics _named = row_count;
    if _named < _size then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'a name is in the graph already: another job has added it just now'
        );
    end if;
    insert into jobq_private.edge (child, parent, after_failure)
    select
        _all[a.child], _all[a.parent],
        coalesce(
            j.after_failure,
            case when a.child > _size then (
                select min(e.after_failure)
                from jobq_private.edge as e
                where e.child = _all[a.child]
            ) end,
            'cancel'
        )
    from unnest(store_nodes.arrows) as a
    left join unnest(_jobs) as j on j.ordinal = a.child;
    insert into jobq_private.look (about, id)
    select distinct 'child', _all[a.child]
    from unnest(store_nodes.arrows) as a
    where a.parent > _size;
end
$$;

revoke all on function jobq_private.store_nodes from public;

comment on function jobq_private.store_nodes is
'Stores the jobs of a graph, with what they wait for.';

-- Purpose: the jobs that hang together with one: all, or those below it, itself included.
-- Invariant: reads only; the nearest ones, at most max_jobs. Raises: nothing.
create or replace function jobq_private.tree(
    job_id uuid, direction text, max_jobs integer default 100000
)
returns setof uuid
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    with recursive found as (
        select tree.job_id
        union
        select e.job_id
        from found as f
        cross join lateral (
            select d.child as job_id from jobq_private.edge as d where d.parent = f.job_id
            union all
            select u.parent from jobq_private.edge as u
            where u.child = f.job_id and tree.direction = 'all'
        ) as e
    )
    select f.job_id from found as f limit tree.max_jobs
$$;

revoke all on function jobq_private.tree from public;

comment on function jobq_private.tree is
'The jobs that hang together with one.';

-- Purpose: those of these children that could be released or cancelled now, or wait for a job
-- whose end would leave no look.
-- Invariant: reads only. queues are those whose jobs the caller sees; null means all. What it
-- does not see is left to somebody else. Raises: nothing.
create or replace function jobq_private.unsettled_children(children uuid[], queues text[])
returns uuid[]
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
declare
    _below uuid[];
    _above uuid[];
    _failures text[];
begin
    select array_agg(e.child), array_agg(e.parent), array_agg(e.after_failure)
    into _below, _above, _failures
    from jobq_private.edge as e
    left join jobq_private.job as p on p.job_id = e.parent
    where e.child = any(unsettled_children.children) and e.is_open and p.is_awaited is not true;
    return array(
        select c.job_id
        from jobq_private.job as c
        where c.job_id = any(unsettled_children.children)
        and c.state = 'blocked'
        and (
            not exists (
                select from jobq_private.edge as o where o.child = c.job_id and o.is_open
            )
            or c.job_id in (
                select b.child
                from unnest(_below, _failures, jobq_private.ends_of(_above))
                    as b (child, after_failure, ended_as)
                where b.ended_as is null
                or jobq_private.follows(b.ended_as, b.after_failure) is not null
            )
        )
        union all
        select i.job_id
        from unnest(unsettled_children.children) as i (job_id)
        where unsettled_children.queues is not null
        and jobq_private.state_of(i.job_id) is null
    );
end
$$;

revoke all on function jobq_private.unsettled_children from public;

comment on function jobq_private.unsettled_children is
'Children that have waited long enough, or of which a parent is not marked.';

-- Purpose: those of these parents behind whose end something is left to do.
-- Invariant: reads only. queues are those whose jobs the caller sees; null means all. What it
-- does not see whole is left to somebody else. Raises: nothing.
create or replace function jobq_private.unsettled_parents(parents uuid[], queues text[])
returns uuid[]
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
as $$
    select array(
        select p.parent
        from unnest(unsettled_parents.parents, jobq_private.ends_of(unsettled_parents.parents))
            as p (parent, ended_as)
        cross join lateral (
            select e.parent
            from jobq_private.edge as e
            left join jobq_private.job as c on c.job_id = e.child
            where e.parent = p.parent
            and e.is_open
            and (
                p.ended_as = 'succeeded'
                or (
                    c.state = 'blocked'
                    and jobq_private.follows(p.ended_as, e.after_failure) is not null
                )
                or (
                    unsettled_parents.queues is not null
                    and coalesce(c.queue <> all(unsettled_parents.queues), true)
                )
            )
            limit 1
        ) as o
        where p.ended_as is not null
    )
$$;

revoke all on function jobq_private.unsettled_parents from public;

comment on function jobq_private.unsettled_parents is
'Parents behind whose end something is left to do.';

-- Purpose: which of these ended jobs, that are about to be redriven, have to wait again: for jobs
-- that they waited for, or for the end of a batch that has not called them yet.
-- Invariant: edges that a death had closed are opened again: those of blocked jobs that wait for
-- these, and those of these to jobs that live. Blocked ones are locked for it, in the order of
-- ids, so that none is released meanwhile; a child that the caller may not see is not, and no harm
-- is done where it has run already. Batches whose members or jobs at the end these are do not end
-- until the commit; of one that has ended somebody looks anew what becomes of such a job.
-- is true keeps the index of blocked jobs away, by which the array would be gone through for each
-- of them. Raises: nothing.
create or replace function jobq_private.wait_again(job_ids uuid[])
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    _sees_all constant boolean := jobq_private.worked_queues() is null;
    _waiting uuid[];
    _called uuid[];
begin
    perform jobq_private.hold_batches(wait_again.job_ids);
    _waiting := array(
        select j.job_id
        from jobq_private.job as j
        where j.job_id = any(array(
            select e.child
            from jobq_private.edge as e
            where e.parent = any(wait_again.job_ids)
            and e.after_failure = 'run' and not e.is_open
        ))
        and (j.state = 'blocked') is true
        order by j.job_id
        for no key update
    );
    with closed as materialized (
        select e.ctid, e.child
        from jobq_private.edge as e
        where e.parent = any(wait_again.job_ids)
        and e.after_failure = 'run' and not e.is_open
        union
        select e.ctid, e.child
        from jobq_private.edge as e
        join jobq_private.job as p on p.job_id = e.parent
        where e.child = any(wait_again.job_ids)
        and e.after_failure = 'run' and not e.is_open
    )
    update jobq_private.edge as e
    set is_open = true
    from closed as c
    where e.ctid = c.ctid
    and (
        c.child in (select w from unnest(_waiting) as w)
        or c.child in (select i from unnest(wait_again.job_ids) as i)
        or (not _sees_all and jobq_private.state_of(c.child) is null)
    );
    with batch as materialized (
        select b.on_success, b.on_end, b.on_first_death
        from jobq_private.batch as b
        where b.on_success = any(wait_again.job_ids)
        or b.on_end = any(wait_again.job_ids)
        or b.on_first_death = any(wait_again.job_ids)
        order by b.batch_id
        for share
    )
    select array_agg(c.job_id) into _called
    from batch as b
    cross join lateral unnest(array[b.on_success, b.on_end, b.on_first_death]) as c (job_id)
    where not exists (
        select from jobq_private.job_archive as a where a.job_id = c.job_id and a.attempt > 0
    );
    return array(
        select w.job_id
        from unnest(wait_again.job_ids) as w (job_id)
        where w.job_id in (select c from unnest(_called) as c)
        or exists (
            select from jobq_private.edge as e where e.child = w.job_id and e.is_open
        )
    );
end
$$;

revoke all on function jobq_private.wait_again from public;

comment on function jobq_private.wait_again is
'Which of these ended jobs have to wait again when they are redriven.';

-- Purpose: how far a batch is.
-- Invariant: counts rows; members of which the retention has ended do not count.
-- Raises: 22004, JQ001.
-- Argument batch_id: the batch
-- Column opened_at: when it was made
-- Column sealed_at: when it was sealed, by seal_batch() or cancel_batch(); null before
-- Column ended_at: when no member was live any more, and its jobs were called; null before
-- Column members: how many jobs belong to it
-- Column blocked: how many wait for other jobs
-- Column queued: how many wait to run
-- Column running: how many run
-- Column retrying: how many wait for another attempt
-- Column succeeded: how many have succeeded
-- Column dead: how many have failed for good
-- Column cancelled: how many were cancelled
-- Column on_success: the job that runs when all have succeeded; null for none
-- Column on_end: the job that runs when all have ended; null for none
-- Column on_first_death: the job that runs when the first is dead; null for none
-- Example: select members, succeeded, ended_at from jobq.batch_status(:'batch');
create or replace function jobq.batch_status(
    batch_id uuid,
    out opened_at timestamptz,
    out sealed_at timestamptz,
    out ended_at timestamptz,
    out members bigint,
    out blocked bigint,
    out queued bigint,
    out running bigint,
    out retrying bigint,
    out succeeded bigint,
    out dead bigint,
    out cancelled bigint,
    out on_success uuid,
    out on_end uuid,
    out on_first_death uuid
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _batch jobq_private.batch := jobq_private.find_batch(batch_status.batch_id);
begin
    opened_at := _batch.opened_at;
    sealed_at := _batch.sealed_at;
    ended_at := _batch.ended_at;
    on_success := _batch.on_success;
    on_end := _batch.on_end;
    on_first_death := _batch.on_first_death;
    select
        count(*), count(*) filter (where m.state = 'blocked'),
        count(*) filter (where m.state = 'queued'),
        count(*) filter (where m.state = 'running'),
        count(*) filter (where m.state = 'retrying'),
        count(*) filter (where m.state = 'succeeded'),
        count(*) filter (where m.state = 'dead'),
        count(*) filter (where m.state = 'cancelled')
    into members, blocked, queued, running, retrying, succeeded, dead, cancelled
    from (
        select j.state from jobq_private.job as j where j.batch_id = _batch.batch_id
        union all
        select a.state from jobq_private.job_archive as a where a.batch_id = _batch.batch_id
    ) as m;
end
$$;

revoke all on function jobq.batch_status from public;
grant execute on function jobq.batch_status
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.batch_status is
'Returns how far a batch is: its members by state, and whether it is sealed and has ended.';

-- Purpose: cancel the members of a batch: those that wait at once, those that run by asking
-- their workers; and seal it.
-- Invariant: at most max_jobs waiting ones at a call, the oldest first, so call again while
-- some remain. What somebody holds at this moment remains too.
-- Raises: 22004, 22023, JQ001.
-- Argument batch_id: the batch
-- Argument max_jobs: at most so many, 1 to 100000.
-- Argument reason: why; kept with each job, at most 512 characters.
-- Column cancelled: how many were cancelled
-- Column requested: how many run, and were asked to stop
-- Column remaining: how many are left, neither cancelled nor asked
-- Example: select * from jobq.cancel_batch(:'batch', 'wrong list');
create or replace function jobq.cancel_batch(
    batch_id uuid,
    reason text default null,
    max_jobs integer default 10000,
    out cancelled bigint,
    out requested bigint,
    out remaining bigint
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held uuid[];
begin
    perform jobq_private.find_batch(cancel_batch.batch_id);
    if cancel_batch.max_jobs is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_jobs');
    elsif cancel_batch.max_jobs not between 1 and 100000
        or length(cancel_batch.reason) > 512
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT',
            'max_jobs must be from 1 to 100000, and reason have at most 512 characters'
        );
    end if;
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

revoke all on function jobq.cancel_batch from public;
grant execute on function jobq.cancel_batch
to jobq_producer, jobq_operator;

comment on function jobq.cancel_batch is
'Cancels the members of a batch and seals it, and says how many it has cancelled, has asked to stop, and how many remain.';

-- Purpose: cancel a job with all that hangs together with it: those that wait at once, those
-- that run by asking their workers.
-- Invariant: each as by cancel(), in one transaction; all rows are locked first, in the order of
-- ids, so that none of them ends meanwhile. What has ended stays as it is. Raises: 22004, 22023, JQ001.
-- Argument job_id: any job of the tree
-- Argument reason: why; kept with each job, at most 512 characters.
-- Argument scope: all (every job that is connected with it) or downstream (it, and what waits
-- for it)
-- Column cancelled_id: the id of a job that was live
-- Column outcome: cancelled or cancel_requested.
-- Example: select * from jobq.cancel_tree(:'waiting', 'ordered twice');
create or replace function jobq.cancel_tree(
    job_id uuid, reason text default null, scope text default 'all'
)
returns table (cancelled_id uuid, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _held uuid[];
begin
    perform jobq.get_job(cancel_tree.job_id);
    if cancel_tree.scope is null or cancel_tree.scope not in ('all', 'downstream') then
        perform jobq_private.raise_error('INVALID_ARGUMENT', 'scope must be all or downstream');
    elsif length(cancel_tree.reason) > 512 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'reason must have at most 512 characters'
        );
    end if;
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

revoke all on function jobq.cancel_tree from public;
grant execute on function jobq.cancel_tree
to jobq_producer, jobq_operator;

comment on function jobq.cancel_tree is
'Cancels a job with all that hangs together with it, and says which jobs.';

-- Purpose: say that something has happened, for all jobs that wait for it or will.
-- Invariant: joins the caller's transaction, and is undone with it. The first emit of an
-- event stays: true for that one, false for those that follow. An event is kept as long as
-- finished jobs are, and longer while a job waits for it.
-- While grants by queue are enforced, it takes all queues, since jobs of any may wait.
-- Raises: 22004, 22023, 42501, JQ005, JQ006.
-- Argument payload: what comes with it, for those that wait: any JSON up to max_payload_bytes
-- Returns: true for the first emit of the event
-- Example: select jobq.emit('payment:42', '{"euro": 5}');
create or replace function jobq.emit(event text, payload jsonb default 'null')
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform jobq_private.check_event(emit.event, emit.payload);
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

revoke all on function jobq.emit from public;
grant execute on function jobq.emit to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.emit is
'Says that an event has happened, for all jobs that wait for it or will; true for the first that says so.';

-- Purpose: add jobs that wait for each other, given by names, with one call.
-- Invariant: all or none. What waits is blocked; arrows that lead round are refused. Jobs that
-- join a running graph may hold up others that are blocked yet: their rows are locked until the
-- commit, so that none of them is released meanwhile.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument graph: a JSON object with jobs, an array of 1 to 100000 objects. Each has a name, 1
-- to 256 characters, the members of enqueue_many() but for keys, after: an array
-- of names in the graph, or of ids of other jobs, and before: an array of names in the graph
-- that runs already, or of ids of other jobs, all of them blocked yet, which then wait for this
-- one too.
-- Argument graph_of: a live job whose graph these jobs join, as the one that its own handler
-- runs; null means a graph of their own.
-- Column name: the name of the job in the graph
-- Example: select * from jobq.enqueue_graph('{"jobs": [{"name": "a", "kind": "fetch"},
--     {"name": "b", "kind": "resize", "after": ["a"]}, {"name": "c", "kind": "report", "after": ["b"]}]}');
create or replace function jobq.enqueue_graph(graph jsonb, graph_of uuid default null)
returns table (name text, job_id uuid)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select a.name, a.job_id
    from jobq_private.add_graph(enqueue_graph.graph, enqueue_graph.graph_of, false) as a;
end
$$;

revoke all on function jobq.enqueue_graph from public;
grant execute on function jobq.enqueue_graph
to jobq_producer, jobq_worker;

comment on function jobq.enqueue_graph is
'Adds jobs that wait for each other, all or none, and returns their names and ids.';

-- Purpose: what the jobs have come to that a job waited for, or waits for.
-- Invariant: in the order of their ids; a job that finished jobs depend on is kept as long as
-- they are. Raises: 22004, JQ001.
-- Column parent_id: the job that was waited for
-- Column name: its name in the graph; null when it is in none, and when it is hidden
-- Column kind: its kind; null when it is gone or hidden
-- Column state: the state it is in; gone when there is no trace of it, as of one that
-- was deleted; hidden instead to a caller who may not see all queues, and so cannot tell whether it
-- is gone or not to be seen
-- Column result: what it returned; null unless it has succeeded
-- Column after_failure: what follows for the job that waits when this one is dead or cancelled
-- Example: select parent_id, result from jobq.list_inputs(:'running');
create or replace function jobq.list_inputs(job_id uuid)
returns table (parent_id uuid, name text, kind text, state text, result jsonb, after_failure text)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _unseen constant text := (
        select case
            when row_security_active('jobq_private.job') and not coalesce(h.any_of && '{*}', false)
            then 'hidden' else 'gone'
        end
        from jobq_private.held_queue as h
    );
begin
    perform jobq.get_job(list_inputs.job_id);
    return query
    select
        e.parent, case when coalesce(p.state, _unseen) <> 'hidden' then n.name end, p.kind,
        coalesce(p.state, _unseen), p.result, e.after_failure
    from jobq_private.edge as e
    left join lateral (
        select j.job_id, j.kind, j.state, j.result
        from jobq.job as j
        where j.job_id = e.parent and j.finished_at is null
        union all
        select j.job_id, j.kind, j.state, j.result
        from jobq.job as j
        where j.job_id = e.parent
        and j.finished_at >= jobq_private.id_time(e.parent) - interval '1 day'
    ) as p on true
    left join jobq_private.node as n on n.job_id = e.parent
    where e.child = list_inputs.job_id
    order by e.parent;
end
$$;

revoke all on function jobq.list_inputs from public;
grant execute on function jobq.list_inputs
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_inputs is
'Returns what the jobs have come to that a job waits for, or waited for.';

-- Purpose: what the steps of a job have come to, in their order.
-- Invariant: what wait_for() has recorded stands among them, its name beginning with
-- event:. Raises: 22004, JQ001.
-- Column name: the step's name
-- Column value: what the step has come to
-- Column attempt: the attempt that recorded it
-- Column saved_at: when
-- Example: select * from jobq.list_steps(:'running');
create or replace function jobq.list_steps(job_id uuid)
returns table (name text, value jsonb, attempt integer, saved_at timestamptz)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform jobq.get_job(list_steps.job_id);
    return query
    select s.name, s.value, s.attempt, s.saved_at
    from jobq_private.step as s
    where s.job_id = list_steps.job_id
    order by s.saved_at, s.name;
end
$$;

revoke all on function jobq.list_steps from public;
grant execute on function jobq.list_steps to jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.list_steps is
'Returns what the steps of a job have come to, in their order.';

-- Purpose: make a batch, to which jobs are then added, and the jobs that are to run at its end.
-- Invariant: it ends once it is sealed and no member is live. The jobs wait as blocked, and
-- find the batch in their metadata as batch_id. No key may be theirs, for they are new.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006, JQ010.
-- Argument on_success: a job as enqueue_many() takes it, but for keys, expires_at, after and
-- after_failure, to run when all members have succeeded; cancelled when one has not.
-- Argument on_end: a job to run when all members have ended, however.
-- Argument on_first_death: a job to run as soon as a member is dead; cancelled when none is.
-- Returns: the batch, for enqueue(batch_id => …).
-- Example: select jobq.open_batch(on_success => '{"kind": "report"}', on_first_death => '{"kind": "alert"}');
create or replace function jobq.open_batch(
    on_success jsonb default null,
    on_end jsonb default null,
    on_first_death jsonb default null
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _batch_id constant uuid := jobq_private.new_id();
    _given constant jsonb[] := array[
        open_batch.on_success, open_batch.on_end, open_batch.on_first_death
    ];
    _jobs jobq_private.new_job[];
    _ids uuid[];
begin
    _jobs := jobq_private.read_jobs(
        (select coalesce(jsonb_agg(g order by n), '[]') from unnest(_given) with ordinality as u (g, n) where g is not null),
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,batch_id}'
    );
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].callback_of := _batch_id;
        _jobs[_n].metadata := coalesce(_jobs[_n].metadata, '{}')
            || jsonb_build_object('batch_id', _batch_id);
    end loop;
    perform jobq_private.check_new_jobs(_jobs);
    _ids := jobq_private.store_jobs(_jobs);
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

revoke all on function jobq.open_batch from public;
grant execute on function jobq.open_batch
to jobq_producer;

comment on function jobq.open_batch is
'Makes a batch, with the jobs that run when it has succeeded, has ended, or when a first member is dead; returns its id.';

-- Purpose: run jobs of a tree again that are dead or cancelled.
-- Invariant: each as by redrive(), all or none, in sets: those that wait for others are blocked
-- again, and what has succeeded does not run again. The blocked ones are locked first, so that
-- who cancels them because of a death is waited for, or sees the redrive. Raises: 22004, 22023, JQ001, JQ002, JQ004.
-- Argument job_id: any job of the tree; for downstream the one from which on
-- Argument scope: failed (all that are dead, and what was cancelled because of them),
-- downstream (this job and what waits for it, as far as dead or cancelled) or all (every dead
-- or cancelled one)
-- Returns: the ids of the jobs that went back.
-- Example: select * from jobq.redrive_tree(:'dead');
create or replace function jobq.redrive_tree(
    job_id uuid, scope text default 'failed'
)
returns setof uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _all uuid[];
    _chosen uuid[];
    _ended timestamptz[];
    _back uuid[];
begin
    perform jobq.get_job(redrive_tree.job_id);
    if redrive_tree.scope is null or redrive_tree.scope not in ('failed', 'downstream', 'all')
    then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'scope must be failed, downstream or all'
        );
    end if;
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

revoke all on function jobq.redrive_tree from public;
grant execute on function jobq.redrive_tree
to jobq_operator;

comment on function jobq.redrive_tree is
'Puts dead and cancelled jobs of a tree back, and returns their ids.';

-- Purpose: record what a step of a job has come to, and return it.
-- Invariant: the first value stays: whoever saves again gets that one, and must go on with
-- it. On a handler's own connection the step commits with what the handler has written.
-- Raises: 22004, 22023, JQ001, JQ003, JQ005, JQ006.
-- Argument name: the step's name, 1 to 256 characters, unique within the job, and
-- not beginning with event:, as wait_for() names what it records
-- Argument value: what the step has come to: any JSON up to max_payload_bytes; null is kept as
-- JSON's null
-- Returns: the value that is recorded: an earlier one where there was one
-- Example: select jobq.save_step(:'running', 1, 'charge', '{"charge_id": 7}');
create or replace function jobq.save_step(
    job_id uuid, attempt integer, name text, value jsonb
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _value jsonb;
    _outcome text;
begin
    select s.value, s.outcome into _value, _outcome
    from jobq.save_steps(
        array[save_step.job_id], array[save_step.attempt], array[save_step.name],
        jsonb_build_array(save_step.value)
    ) as s;
    if _outcome = 'lost' then
        perform jobq_private.refuse_attempt(save_step.job_id, save_step.attempt);
    end if;
    return _value;
end
$$;

revoke all on function jobq.save_step from public;
grant execute on function jobq.save_step to jobq_worker;

comment on function jobq.save_step is
'Records what a step of a job has come to, and returns what is recorded: the first value stays.';

-- Purpose: record what steps have come to, many with one call and one commit.
-- Invariant: only the attempt that holds the job records, under the lock of its row; a
-- value that is recorded stays, whoever comes later. outcome is 'saved', 'known' for a
-- step that has a value already, which comes back, or 'lost' for an attempt that no longer
-- holds its job. Rows are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006.
-- Argument names: the steps' names, parallel to job_ids, 1 to 256 characters each, none beginning
-- with event:
-- Argument results: what the steps have come to, a JSON array parallel to job_ids
-- Column name: the step's name
-- Column value: what is recorded; null where the attempt had lost its job
-- Column outcome: `saved`, `known` or `lost`
-- Example: select * from jobq.save_steps(array[:'running']::uuid[], '{1}', '{ship}', '[true]');
create or replace function jobq.save_steps(
    job_ids uuid[], attempts integer[], names text[], results jsonb
)
returns table (job_id uuid, name text, value jsonb, outcome text)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
set enable_nestloop = off
as $$
#variable_conflict use_column
begin
    -- The joins hash: row by row they would cost the square of the steps in a call.
    perform jobq_private.check_steps(
        save_steps.job_ids, save_steps.attempts, save_steps.names, save_steps.results
    );
    return query
    with given as materialized (
        select
            g.job_id, g.attempt, g.name, g.value, g.n,
            row_number() over (
                partition by g.job_id, g.attempt, g.name order by g.n
            ) as place
        from rows from (
            unnest(save_steps.job_ids, save_steps.attempts, save_steps.names),
            jsonb_array_elements(save_steps.results)
        ) with ordinality as g (job_id, attempt, name, value, n)
    ),
    held as materialized (
        select j.job_id, j.attempt
        from jobq_private.job as j
        where j.job_id = any(save_steps.job_ids)
        and j.lease_expires_at is not null
        order by j.job_id
        for no key update of j
    ),
    saved as (
        insert into jobq_private.step as s (job_id, name, value, attempt)
        select distinct on (g.job_id, g.name) g.job_id, g.name, g.value, g.attempt
        from given as g
        join held as h on h.job_id = g.job_id and h.attempt = g.attempt
        order by g.job_id, g.name, g.n
        on conflict on constraint step_pkey do nothing
        returning s.job_id, s.name, s.value
    )
    select
        g.job_id, g.name,
        case when h.job_id is not null then coalesce(s.value, (
            select k.value
            from jobq_private.step as k
            where k.job_id = g.job_id and k.name = g.name
        )) end,
        case
            when h.job_id is null then 'lost'
            when s.job_id is not null and g.place = 1 then 'saved'
            else 'known'
        end
    from given as g
    left join held as h on h.job_id = g.job_id and h.attempt = g.attempt
    left join saved as s on s.job_id = g.job_id and s.name = g.name
    order by g.n;
end
$$;

revoke all on function jobq.save_steps from public;
grant execute on function jobq.save_steps to jobq_worker;

comment on function jobq.save_steps is
'Records the values of many steps, of one job or of many, and tells for each whether it was new.';

-- Purpose: say that a batch has all its members, so that it can end.
-- Invariant: until it has ended, members may still be added, as by members that run; it ends
-- once no member is live, at once if it has none. Sealing twice is harmless.
-- Raises: 22004, JQ001.
-- Argument batch_id: the batch
-- Example: select jobq.seal_batch(:'batch');
create or replace function jobq.seal_batch(batch_id uuid)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _batch jobq_private.batch := jobq_private.find_batch(seal_batch.batch_id);
begin
    update jobq_private.batch as b
    set sealed_at = now()
    where b.batch_id = _batch.batch_id and b.sealed_at is null;
    insert into jobq_private.look (about, id) values ('batch', _batch.batch_id);
    perform jobq_private.wake(array[_batch.queue]);
end
$$;

revoke all on function jobq.seal_batch from public;
grant execute on function jobq.seal_batch
to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.seal_batch is
'Says that a batch has all its members: it ends once none of them is live.';

-- Purpose: a job with all that hangs together with it, as nodes and edges, for who draws it.
-- Invariant: reads only. At most max_nodes jobs, those nearest to this one; is_whole tells
-- whether these are all. Edges run from the job that is waited for to the one that waits.
-- Raises: 22004, 22023, JQ001.
-- Argument job_id: any job of the tree
-- Argument max_nodes: at most so many jobs, 1 to 10000.
-- Returns: an object with job_id, graph_id (null where no graph was enqueued), is_whole, nodes (each with
-- job_id, name, kind, queue, state, attempts, max_attempts, created_at, run_at, started_at, finished_at,
-- error_code and error of a job that is dead, cancelled or retrying, batch_id, waits_for: how many open edges hold it up, and held_up_by: one of the jobs at
-- the end of them that waits for none itself, null where it is not among these nodes) and edges (each with parent_id, child_id, after_failure, is_open).
-- Example: select jsonb_array_length(jobq.show_graph(:'waiting') -> 'nodes');
create or replace function jobq.show_graph(job_id uuid, max_nodes integer default 1000)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    _ids uuid[];
begin
    perform jobq.get_job(show_graph.job_id);
    if show_graph.max_nodes is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'max_nodes');
    elsif show_graph.max_nodes not between 1 and 10000 then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'max_nodes must be from 1 to 10000'
        );
    end if;
    _ids := array(
        select t.job_id
        from jobq_private.tree(show_graph.job_id, 'all', show_graph.max_nodes + 1) as t (job_id)
    );
    return jsonb_build_object(
        'job_id', show_graph.job_id,
        'graph_id', (
            select n.graph_id from jobq_private.node as n where n.job_id = show_graph.job_id
        ),
        'is_whole', cardinality(_ids) <= show_graph.max_nodes,
        'nodes', jobq_private.graph_node_documents(_ids[:show_graph.max_nodes]),
        'edges', jobq_private.graph_edge_documents(_ids[:show_graph.max_nodes])
    );
end
$$;

revoke all on function jobq.show_graph from public;
grant execute on function jobq.show_graph
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on function jobq.show_graph is
'Returns a job with all that hangs together with it as one JSON document of nodes and edges.';

-- Purpose: tell one job something that it waits for or will: an approval, an answer.
-- Invariant: an event that only this job sees, under the name that it waits for; the first
-- one stays. Joins the caller's transaction. A job that has ended is told nothing.
-- Raises: 22004, 22023, JQ001, JQ002, JQ005, JQ006.
-- Argument name: the name that the job waits for as an event, 1 to 256 characters
-- Argument payload: what comes with it: any JSON up to max_payload_bytes
-- Returns: true for the first signal of the name
-- Example: select jobq.signal(:'waiting', 'approval', '{"by": "ada"}');
create or replace function jobq.signal(job_id uuid, name text, payload jsonb default 'null')
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _job jobq.job := jobq.get_job(signal.job_id);
begin
    perform jobq_private.check_event(signal.name, signal.payload);
    if _job.finished_at is not null then
        perform jobq_private.raise_error('ILLEGAL_STATE', format(
            'job_id %s is %s: it hears no signal', signal.job_id, _job.state
        ));
    end if;
    return jobq_private.store_event(signal.name, signal.job_id, signal.payload);
end
$$;

revoke all on function jobq.signal from public;
grant execute on function jobq.signal to jobq_producer, jobq_worker, jobq_operator;

comment on function jobq.signal is
'Tells one job something that it waits for or will; true for the first of this name.';

-- Purpose: a handler waits for an event, or for a signal to its job of that name.
-- Invariant: outcome is 'arrived' with the payload, 'timed_out', or 'waiting': then the job
-- has been given back, its attempt not counted, and the handler must end; the job is due
-- again when the event comes, at the latest after timeout, which counts from the first
-- call. The attempt that then runs calls again and is told. While an emit is under way that
-- could miss it, the job looks again after a quarter of a second. A transaction with one
-- snapshot cannot see what was emitted since: it leaves a row for maintain(), which looks.
-- Raises: 22004, 22023, JQ001, JQ003. Never: PAYLOAD_TOO_LARGE,
-- PAYLOAD_TOO_DEEP, PAYLOAD_INVALID.
-- Argument timeout: how long at most, from the first call; up to 36500 days; null means that
-- Column outcome: `arrived`, `timed_out` or `waiting`
-- Column payload: what came with the event
-- Example: select * from jobq.wait_for(:'running', 1, 'payment:42', '1 hour');
create or replace function jobq.wait_for(
    job_id uuid, attempt integer, event text, timeout interval default null,
    out outcome text, out payload jsonb
)
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _emitting constant integer := jobq_private.lock_class('emitting');
    _end jsonb;
    _due timestamptz;
begin
    perform jobq_private.check_event(wait_for.event, 'null');
    if wait_for.timeout < interval '0' or wait_for.timeout > interval '36500 days' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'timeout must be between 0 and 36500 days'
        );
    end if;
    perform from jobq_private.job as j
    where j.job_id = wait_for.job_id
    and j.attempt = wait_for.attempt
    and j.lease_expires_at is not null
    for no key update;
    if not found then
        perform jobq_private.refuse_attempt(wait_for.job_id, wait_for.attempt);
    end if;

    _end := jobq_private.settle_wait(wait_for.job_id, wait_for.attempt, wait_for.event);
    if _end is null then
        insert into jobq_private.waiter as w (job_id, event, deadline)
        values (
            wait_for.job_id, wait_for.event,
            clock_timestamp() + coalesce(wait_for.timeout, interval '36500 days')
        )
        on conflict on constraint waiter_pkey do update set event = w.event
        returning w.deadline into _due;
        if current_setting('transaction_isolation') <> 'read committed' then
            insert into jobq_private.late_event (event, job_id)
            values (wait_for.event, wait_for.job_id);
        end if;
        if not pg_try_advisory_xact_lock(_emitting, hashtext(wait_for.event) & 1023) then
            _due := least(_due, clock_timestamp() + interval '0.25 s');
        end if;
        _end := jobq_private.settle_wait(wait_for.job_id, wait_for.attempt, wait_for.event);
    end if;
    outcome := coalesce(_end ->> 'outcome', 'waiting');
    payload := _end -> 'payload';
    if _end is null then
        perform jobq.release(wait_for.job_id, wait_for.attempt, _due);
    end if;
end
$$;

revoke all on function jobq.wait_for from public;
grant execute on function jobq.wait_for to jobq_worker;

comment on function jobq.wait_for is
'Waits for an event or a signal: what has come, or that the job has been given back until it comes.';

commit;
