-- Purpose: recover() as a task of maintain(). Never: NULL_ARGUMENT, INVALID_ARGUMENT.
create or replace function jobq_private.recover_leases(max_rows integer)
returns bigint language sql as $$
    select count(*) from jobq_internal.recover(max_rows)
$$;
