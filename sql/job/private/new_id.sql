-- Purpose: a UUID of version 7, ordered by time also within a session; its tenth byte is the
-- number of this database in its cluster.
-- Invariant: before PostgreSQL 18, 12 bits of microseconds follow the milliseconds (RFC 9562,
-- section 6.2, method 3). Inlined, so no SET clause.
-- creates: function jobq_private.new_id
do $do$
begin
    if current_setting('server_version_num')::integer >= 180000 then
        create or replace function jobq_private.new_id(shard_id integer)
        returns uuid language sql parallel safe as $$
        select pg_catalog.encode(pg_catalog.set_byte(
            pg_catalog.uuid_send(pg_catalog.uuidv7()), 9, new_id.shard_id
        ), 'hex')::uuid
        $$;
    else
        create or replace function jobq_private.new_id(shard_id integer)
        returns uuid language sql parallel safe as $$
        select pg_catalog.encode(
            pg_catalog.substring(pg_catalog.int8send(t.us / 1000), 3)
            || pg_catalog.substring(
                pg_catalog.int4send((28672 + (t.us % 1000) * 4096 / 1000)::integer), 3
            )
            || pg_catalog.set_byte(
                pg_catalog.substring(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 9),
                1, new_id.shard_id
            ),
            'hex'
        )::uuid
        from (
            select (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint as us
        ) as t
        $$;
    end if;
end
$do$;
