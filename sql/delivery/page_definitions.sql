-- Purpose: Returns a page of payload specs, configs, secrets or endpoints as JSON documents.
-- Invariant: contains no value of a secret. Raises: 22004, 22023.
-- Argument type: payload_spec, config, secret or endpoint.
-- Argument max_definitions: maximum number, 1 to 100000.
-- Example: select * from jobq_internal.page_definitions('endpoint');
create or replace function jobq_internal.page_definitions(
    type text, after text default null, max_definitions integer default 50
)
returns table (item json, cursor text) language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    select jobq_private.check_count(
        'max_definitions', page_definitions.max_definitions, 1, 100000
    );
    select t.item, case when t.n < count(*) over () then t.name end
    from (
        select d.item, d.name, row_number() over (order by d.name) as n
        from jobq_private.definition_document as d
        where d.type = page_definitions.type
        and (page_definitions.after is null or d.name > page_definitions.after)
        order by d.name
        limit page_definitions.max_definitions + 1
    ) as t
    order by t.n
    limit page_definitions.max_definitions
$$;
grant execute on function jobq_internal.page_definitions to jobq_operator, jobq_reader;
