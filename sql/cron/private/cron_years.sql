-- Purpose: read the year field of a cron expression.
-- Invariant: pure; years are too many for the bits of a bigint, and rare enough to be a
-- list. No SET, since each expression costs a call, and all names are qualified.
-- Raises: JQ009.
create or replace function jobq_private.cron_years(list text)
returns int[]
language plpgsql
immutable
parallel safe
security invoker
as $$
declare
    _item text;
    _bounds int[];
    _years int[] := '{}';
begin
    if list = '*' then
        return null;
    end if;
    foreach _item in array pg_catalog.string_to_array(list, ',') loop
        if _item !~ '^([*]|[0-9]+(-[0-9]+)?)(/0*[1-9][0-9]{0,2})?$' then
            perform jobq_private.cron_refuse('year', _item);
        end if;
        select pg_catalog.array_agg(jobq_private.cron_number('year', w.word))
        into _bounds
        from pg_catalog.regexp_split_to_table(
            pg_catalog.replace(pg_catalog.split_part(_item, '/', 1), '*', '1970-2199'),
            '-'
        ) as w (word);
        if _item ~ '^[0-9]+/' then
            _bounds := _bounds || 2199;
        elsif _bounds[1] > _bounds[2] then
            perform jobq_private.cron_refuse('year', _item);
        end if;
        _years := _years || array(
            select pg_catalog.generate_series(
                _bounds[1],
                coalesce(_bounds[2], _bounds[1]),
                coalesce(nullif(pg_catalog.split_part(_item, '/', 2), ''), '1')::int
            )
        );
    end loop;
    return array(select distinct y.year from unnest(_years) as y (year) order by 1);
end
$$;

revoke all on function jobq_private.cron_years from public;

comment on function jobq_private.cron_years is
'Returns the years that a year field names, ascending, or null for all of them.';
