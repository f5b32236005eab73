-- Purpose: the graph of a schedule in the form of the HTTP API.
-- Invariant: durations are milliseconds; the rest is unchanged.
create or replace function jobq_private.graph_document(graph jsonb)
returns jsonb
language sql
stable
strict
as $$
    select jsonb_build_object('jobs', jsonb_agg(
        case
            when n.node ->> 'timeout' is null then n.node - 'timeout'
            else n.node - 'timeout' || jsonb_build_object(
                'timeout_ms',
                jobq_private.milliseconds((n.node ->> 'timeout')::interval)
            )
        end
        order by n.place
    ))
    from jsonb_array_elements(graph_document.graph -> 'jobs')
        with ordinality as n (node, place)
$$;
