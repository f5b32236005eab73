-- Purpose: a time in ISO 8601 with the offset of a zone.
-- Invariant: depends only on the zone database; uses UTC if the server no longer has
-- the zone, so that such a schedule can still be shown.
create or replace function jobq_private.moment_in(moment timestamptz, time_zone text)
returns text language plpgsql stable as $$
declare
    _shown timestamp;
    _ahead interval;
begin
    _shown := moment at time zone time_zone;
    _ahead := _shown - (moment at time zone 'UTC');
    return rtrim(rtrim(to_char(_shown, 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.')
        || case when _ahead < interval '0' then '-' else '+' end
        || to_char(greatest(_ahead, -_ahead), 'HH24:MI');
exception
    when invalid_parameter_value then
        return jobq_private.moment_in(moment, 'UTC');
end
$$;
