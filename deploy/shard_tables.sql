-- Deploy jobq:shard_tables to pg
begin;
set local role jobq_owner;

-- The databases of a cluster. All of them, and its router, hold the same rows but for is_own.
create table jobq_private.shard (
    shard_id integer not null,
    url text not null,
    is_own boolean not null default false,
    constraint shard_pkey primary key (shard_id),
    constraint shard_shard_id_check check (shard_id between 0 and 255),
    constraint shard_url_check check (length(url) between 1 and 2048)
);

create unique index shard_is_own_key on jobq_private.shard (is_own)
where is_own;

comment on table jobq_private.shard is 'The databases of a cluster, and which of them this is.';

-- From when on which shards get new keys. Earlier ones are kept: keys may be where they led.
create table jobq_private.shard_epoch (
    epoch integer not null,
    shard_ids integer[] not null,
    began_at timestamptz not null default now(),
    constraint shard_epoch_pkey primary key (epoch),
    constraint shard_epoch_epoch_check check (epoch >= 1),
    constraint shard_epoch_shard_ids_check check (cardinality(shard_ids) between 1 and 256)
);

comment on table jobq_private.shard_epoch is 'From when on which shards get new keys.';

commit;
