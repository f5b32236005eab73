-- What jobq.settings() promises, and that a job gets what it shows: the call's
-- Needs more than the core.
-- argument, else the kind's word, else the queue's, else the global default.
begin;
select plan(162);

-- A new job of this kind in this queue, as it is stored.
create function pg_temp.made(kind text, queue text)
returns jsonb
language plpgsql
as $$
declare
    _job_id uuid := jobq.enqueue(made.kind, queue => made.queue);
begin
    return (select to_jsonb(j) from jobq_private.job as j where j.job_id = _job_id);
end
$$;

-- Defaults
select is(
    jobq.settings() - array['payload_schema', 'json_schema', 'max_depth', 'concurrency_key', 'cost', 'dedup_key', 'dead_letter_kind',
    'dedup_max_wait', 'run']
    - array['max_running', 'rate_limit', 'rate_period', 'rate_burst', 'key_max_running',
    'key_rate_limit', 'key_rate_period', 'key_rate_burst', 'ordered', 'on_dead',
    'kind_max_running', 'kind_rate_limit', 'kind_rate_period', 'kind_rate_burst', 'kind_key_max_running', 'kind_key_rate_limit',
    'kind_key_rate_period', 'kind_key_rate_burst', 'kind_ordered', 'kind_on_dead'],
    '{
        "queue": "default", "priority": 0, "max_attempts": 5, "timeout": "00:05:00",
        "lease": "00:00:30", "retry_strategy": "exponential",
        "retry_initial_delay": "00:00:01", "retry_max_delay": "01:00:00",
        "retry_jitter": 0.25, "dedup": "skip", "dedup_period": "00:00:10", "reuse_key_after_failure": false,
        "max_payload_bytes": 1048576, "max_payload_depth": 64,
        "max_expiries": 5, "retention": "30 days", "key_retention": "30 days",
        "keep_succeeded": "30 days", "keep_dead": "30 days", "keep_cancelled": "30 days",
        "redact_emails": false
    }',
    'without any declaration the documented defaults hold'
);
select is(
    jobq.settings('nobody', 'nowhere') - 'queue', jobq.settings() - 'queue',
    'an undeclared kind in an undeclared queue gets the defaults'
);
select is(
    jobq.settings() -> array_element, 'null',
    format('%s is not set by default', array_element)
)
from unnest(array['payload_schema', 'json_schema', 'max_depth', 'concurrency_key', 'cost', 'dedup_key', 'dead_letter_kind', 'run',
    'max_running', 'rate_limit', 'rate_period', 'rate_burst', 'key_max_running',
    'key_rate_limit', 'key_rate_period', 'key_rate_burst', 'ordered', 'on_dead',
    'kind_max_running', 'kind_rate_limit', 'kind_rate_period', 'kind_rate_burst', 'kind_key_max_running', 'kind_key_rate_limit',
    'kind_key_rate_period', 'kind_key_rate_burst', 'kind_ordered', 'kind_on_dead']) as array_element;

-- Global default, then queue, then kind
select jobq.configure(
    priority => 1, max_attempts => 11, timeout => '11 s', lease => '11 s',
    retry_preset => 'powers_of_two', dedup => 'replace', reuse_key_after_failure => true,
    max_payload_bytes => 2000, max_payload_depth => 20
);
select jobq.put_queue(
    'busy', priority => 2, max_attempts => 12, timeout => '12 s', lease => '12 s',
    retry_preset => 'decorrelated', max_depth => 1000, key_max_running => 3,
    max_running => 9, rate_limit => 4, rate_period => '10 s', rate_burst => 2,
    key_rate_limit => 3, key_rate_period => '5 s', key_rate_burst => 6, ordered => true,
    on_dead => 'hold'
);
select jobq.put_kind(
    'fussy', queue => 'busy', priority => 3, max_attempts => 13, timeout => '13 s',
    lease => '13 s', retry_preset => 'delivery', dedup => 'enqueue',
    reuse_key_after_failure => false, payload_schema => '{"type": "object"}',
    concurrency_key => '{a}', cost => '{tokens}', dedup_key => '{u}', dead_letter_kind => 'l',
    max_running => 8, rate_limit => 7, rate_period => '1 s',
    rate_burst => 5, dedup_period => '3 s', dedup_max_wait => '9 s',
    key_max_running => 6, key_rate_limit => 2, key_rate_period => '4 s', key_rate_burst => 7,
    ordered => true, on_dead => 'continue'
);
select jobq.put_kind('plain');

create temporary table expected (setting text, global text, of_queue text,
    of_kind text);
insert into expected values
('priority', '1', '2', '3'),
('max_attempts', '11', '12', '13'),
('timeout', '00:00:11', '00:00:12', '00:00:13'),
('lease', '00:00:11', '00:00:12', '00:00:13'),
('retry_strategy', 'exponential', 'decorrelated', 'exponential'),
('retry_initial_delay', '00:00:02', '00:00:01', '00:00:01'),
('retry_max_delay', '00:17:04', '00:01:00', '00:01:00'),
('retry_jitter', '0', '0', '0.25'),
('dedup', 'replace', 'replace', 'enqueue'),
('dedup_period', '00:00:10', '00:00:10', '00:00:03'),
('dedup_max_wait', null, null, '00:00:09'),
('reuse_key_after_failure', 'true', 'true', 'false'),
('max_depth', null, '1000', '1000'),
('max_payload_bytes', '2000', '2000', '2000'),
('max_payload_depth', '20', '20', '20'),
('payload_schema', null, null, '{"type": "object"}'),
('json_schema', null, null, null),
('key_max_running', null, '3', '3'),
('max_running', null, '9', '9'),
('rate_limit', null, '4', '4'),
('rate_period', null, '00:00:10', '00:00:10'),
('rate_burst', null, '2', '2'),
('key_rate_limit', null, '3', '3'),
('key_rate_period', null, '00:00:05', '00:00:05'),
('key_rate_burst', null, '6', '6'),
('ordered', null, 'true', 'true'),
('on_dead', null, 'hold', 'hold'),
('kind_max_running', null, null, '8'),
('kind_rate_limit', null, null, '7'),
('kind_rate_period', null, null, '00:00:01'),
('kind_rate_burst', null, null, '5'),
('kind_key_max_running', null, null, '6'),
('kind_key_rate_limit', null, null, '2'),
('kind_key_rate_period', null, null, '00:00:04'),
('kind_key_rate_burst', null, null, '7'),
('kind_ordered', null, null, 'true'),
('kind_on_dead', null, null, 'continue'),
('concurrency_key', null, null, '["a"]'),
('cost', null, null, '["tokens"]'),
('dedup_key', null, null, '["u"]'),
('dead_letter_kind', null, null, 'l');
select is(
    jobq.settings('plain', 'elsewhere') ->> e.setting, e.global,
    format('%s: the global default holds where kind and queue are silent', e.setting)
)
from expected as e;
select is(
    jobq.settings('plain', 'busy') ->> e.setting, e.of_queue,
    format('%s: the queue''s word goes before the global default', e.setting)
)
from expected as e;
select is(
    jobq.settings('fussy') ->> e.setting, e.of_kind,
    format('%s: the kind''s word goes before the queue''s', e.setting)
)
from expected as e;
select is_empty(
    $$
    select k.key from jsonb_object_keys(jobq.settings()) as k (key)
    where k.key not in (
        'queue', 'max_expiries', 'retention', 'key_retention', 'redact_emails',
        'keep_succeeded', 'keep_dead', 'keep_cancelled', 'run'
    )
    and k.key not in (select e.setting from expected as e)
    $$,
    'every setting that kinds and queues may have is in the table above'
);

-- The queue itself
select is(
    array[
        jobq.settings('plain') ->> 'queue', jobq.settings('fussy') ->> 'queue',
        jobq.settings('fussy', 'other') ->> 'queue'
    ],
    array['default', 'busy', 'other'],
    'the queue is the call''s, else the kind''s, else default'
);
select is(
    (jobq.settings('fussy', 'other') ->> 'max_depth'), null,
    'a queue named by the call brings its own settings, not those of the kind''s queue'
);

-- A job is made with what settings() shows, unless the call says otherwise
select is_empty(
    $$
    select s.setting
    from unnest(array['priority', 'max_attempts', 'timeout', 'lease']) as s (setting)
    cross join (
        values ('plain', 'elsewhere'), ('plain', 'busy'), ('fussy', null), ('x', 'busy')
    ) as c (kind, queue)
    where pg_temp.made(c.kind, c.queue) ->> s.setting
        is distinct from jobq.settings(c.kind, c.queue) ->> s.setting
    $$,
    'a job is made with what settings() shows'
);
create temporary table made as
select 0 as ordinal, jobq.enqueue(
    'fussy', queue => 'mine', priority => 4, max_attempts => 14, timeout => '14 s'
) as job_id
union all
select e.ordinal, e.job_id
from jobq.enqueue_many('[{"kind": "fussy"}, {"kind": "plain", "queue": "busy"},
    {"kind": "fussy", "max_attempts": 1}, {"kind": "plain"}]') as e;
create temporary view made_job as
select m.ordinal, j.queue, j.priority::integer, j.max_attempts, j.timeout, j.lease
from made as m
join jobq_private.job as j on j.job_id = m.job_id;
select results_eq(
    'select * from made_job where ordinal = 0',
    $$ values (0, 'mine', 4, 14, interval '14 s', interval '13 s') $$,
    'the call''s argument goes before kind, queue and default'
);
select results_eq(
    'select * from made_job where ordinal > 0 order by ordinal',
    $$
    values (1, 'busy', 3, 13, interval '13 s', interval '13 s'),
    (2, 'busy', 2, 12, '12 s', '12 s'), (3, 'busy', 3, 1, '13 s', '13 s'),
    (4, 'default', 1, 11, '11 s', '11 s')
    $$,
    'each job of a batch gets its own settings'
);

-- One part of a preset changed
select jobq.put_kind('mixed', retry_preset => 'delivery', retry_jitter => 0);
select is(
    array[
        jobq.settings('mixed') ->> 'retry_strategy',
        jobq.settings('mixed') ->> 'retry_jitter'
    ],
    array['exponential', '0'],
    'a kind may change one part of its preset'
);

-- Later changes
select jobq.enqueue('plain', queue => 'busy') as old_job \gset
select jobq.put_queue('busy', max_attempts => 99);
select is(
    (select j.max_attempts from jobq_private.job as j where j.job_id = :'old_job'), 12,
    'a job that exists keeps what it was made with'
);
select is(
    array[
        jobq.settings('plain', 'busy') ->> 'max_attempts',
        jobq.settings('plain', 'busy') ->> 'priority'
    ],
    array['99', '1'],
    'declaring again replaces every setting; those left out fall back'
);

select * from finish();
rollback;
