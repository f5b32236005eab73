-- Purpose: the numbers of a list in a field of a cron expression, as bits.
-- Invariant: pure. Raises: JQ009.
create or replace function jobq_private.cron_bits(field integer, list text)
returns bigint language sql immutable as $$
    select bit_or(1::bigint << n.number)
    from string_to_table(cron_bits.list, ',') as i (item)
    cross join lateral unnest(jobq_private.cron_numbers(cron_bits.field, i.item)) as n (number)
$$;
