-- Purpose: the graph of a schedule in the form of the HTTP API.
-- Invariant: durations are milliseconds; the rest is unchanged.
create or replace function jobq_private.graph_document(graph jsonb)
returns jsonb language sql stable strict as $$
    select jsonb_build_object('jobs', jsonb_agg(
        n.node - 'timeout' || jsonb_strip_nulls(jsonb_build_object(
            'timeout_ms', jobq_private.milliseconds((n.node ->> 'timeout')::interval)
        ))
        order by n.place
    ))
    from jsonb_array_elements(graph_document.graph -> 'jobs')
        with ordinality as n (node, place)
$$;
