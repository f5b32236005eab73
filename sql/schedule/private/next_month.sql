-- Purpose: the first day of the month after a day.
-- Invariant: pure, and independent of the session's time zone, unlike date_trunc(); no
-- SET, so that it is inlined.
create or replace function jobq_private.next_month(date date)
returns date
language sql
immutable
parallel safe
as $$
    select pg_catalog.make_date(
        (pg_catalog.date_part('year', date) + pg_catalog.date_part('month', date)::integer / 12)::integer,
        pg_catalog.date_part('month', date)::integer % 12 + 1, 1
    )
$$;
