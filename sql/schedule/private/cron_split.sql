-- Purpose: split a cron expression into its seven fields.
-- Invariant: pure; no SET, because each expression costs a call; all names are
-- qualified.
-- Raises: 22004, JQ009.
create or replace function jobq_private.cron_split(cron text)
returns text[]
language plpgsql
immutable
parallel safe
as $$
declare
    -- the C collation, because in Turkish the capital of i is not I
    _text text := pg_catalog.upper(pg_catalog.left(cron, 1001) collate "C");
    _fields text[] := pg_catalog.regexp_split_to_array(
        pg_catalog.btrim(
            case pg_catalog.btrim(_text, E' \t\n\r')
                when '@YEARLY' then '0 0 1 1 *'
                when '@ANNUALLY' then '0 0 1 1 *'
                when '@MONTHLY' then '0 0 1 * *'
                when '@WEEKLY' then '0 0 * * 0'
                when '@DAILY' then '0 0 * * *'
                when '@MIDNIGHT' then '0 0 * * *'
                when '@HOURLY' then '0 * * * *'
                else _text
            end,
            E' \t\n\r'
        ),
        E'[ \t\n\r]+'
    );
    _count integer := pg_catalog.cardinality(_fields);
begin
    if cron is null then
        perform jobq_private.raise_error('NULL_ARGUMENT', 'cron');
    elsif _count not between 5 and 7 or pg_catalog.length(_text) > 1000 then
        perform jobq_private.raise_error('INVALID_CRON', pg_catalog.format(
            'expression: "%s" has %s fields and %s characters; use 5 to 7'
            ' fields and at most 1000 characters',
            pg_catalog.left(cron, 40), _count, pg_catalog.length(cron)
        ));
    end if;
    return case _count
        when 5 then '0'::text || _fields || '*'::text
        when 6 then _fields || '*'::text
        else _fields
    end;
end
$$;
