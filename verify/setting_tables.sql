-- Verify jobq:setting_tables on pg
begin;

select 1 / (count(*) = 1)::int from jobq_private.setting;
select shard_id, max_payload_bytes, retry_preset from jobq_private.setting where false;
select retry_preset, strategy, initial_delay, max_delay, jitter
from jobq_private.retry_preset where false;
select queue, paused_at, max_depth, retry_preset from jobq_private.queue where false;
select kind, payload_schema, dedup, retry_strategy, version from jobq_private.kind where false;
select kind from jobq_private.paused_kind where false;
select kind, version, strategy from jobq_private.kind_retry where false;
select null::jobq_private.settings, null::jobq_private.retry_policy;

rollback;
