-- Purpose: the existing jobs that new ones name in after and before: by id, or by name
-- in the graph that they join.
-- Invariant: each must exist. A name of a new job has precedence over one of the graph.
-- Raises: 22023, JQ001.
create or replace function jobq_private.graph_others(nodes jsonb, names text[], graph_id uuid)
returns uuid[]
language plpgsql
stable
parallel safe
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
            'INVALID_ARGUMENT', format('name %s is already in the graph', _taken)
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
            'JOB_NOT_FOUND', format('%s is neither a job id nor a name in the graph', _missing)
        );
    end if;
    return array(select distinct o.job_id from unnest(_others) as o (job_id));
end
$$;
