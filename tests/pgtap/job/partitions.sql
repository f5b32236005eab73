-- History is partitioned by day (UTC): made ahead, dropped past retention, and never in
-- the way of a completion.
begin;
select plan(42);

select hold_off_vacuum();

set local timezone = 'UTC';
create function pg_temp.maintained(task text)
returns bigint
language sql
as 'select m.affected from jobq.maintain() as m where m.task = maintained.task';
create function pg_temp.partition(relation text, days integer)
returns text
language sql
as $$
select format('jobq_private.%s_%s', relation, to_char(current_date + days, 'YYYYMMDD'))
$$;
create function pg_temp.place_of(job_id uuid)
returns text
language sql
as $$
select a.tableoid::regclass::text
from jobq_private.job_archive as a
where a.job_id = place_of.job_id
$$;
create function pg_temp.finished(error text default null)
returns uuid
language plpgsql
as $$
declare
    _job_id uuid := jobq.enqueue('work');
begin
    perform jobq.claim_job(_job_id, 'w');
    perform jobq.log(_job_id, 1, 'INFO', 'here');
    if finished.error is null then
        perform jobq.complete(_job_id, 1, '"r"');
    else
        perform jobq.fail(_job_id, 1, finished.error, retryable => false);
    end if;
    return _job_id;
end
$$;

-- With no partition at all
select pg_temp.finished() as early, pg_temp.finished('boom') as failed \gset
select results_eq(
    format('select pg_temp.place_of(id) from unnest(array[%L, %L]::uuid[]) as id',
        :'early', :'failed'),
    $$
    values ('jobq_private.job_archive_default'), ('jobq_private.job_archive_default')
    $$,
    'a job finishes also on a day that nobody has made ready'
);
select is((jobq.get_job(:'early')).state::text, 'succeeded', 'and is found');

-- Made ahead
select is(
    pg_temp.maintained('made_partitions'), 3::bigint, 'today''s first, of three tables'
);
select is(
    to_regclass(pg_temp.partition('job_archive', 1)), null,
    'so that completions do not wait for all the others'
);
select is(
    array(select pg_temp.maintained('made_partitions') from generate_series(1, 8)),
    '{3,3,3,3,3,3,3,0}', 'then the week ahead, a day at a time'
);
select is(
    to_regclass(pg_temp.partition(r.relation, d.days)) is not null,
    d.days between 0 and 7,
    format('%s, %s days from today', r.relation, d.days)
)
from unnest(array['job_archive', 'attempt', 'job_log']) as r (relation)
cross join unnest(array[-1, 0, 7, 8]) as d (days);
select is(
    pg_temp.place_of(:'early'), pg_temp.partition('job_archive', 0),
    'what had finished already moves to the partition of its day'
);
select results_eq(
    format('select result, finished_at <= clock_timestamp() from jobq.get_job(%L)',
        :'early'),
    $$ values ('"r"'::jsonb, true) $$, 'unchanged'
);
select results_eq(
    format(
        'select t.tableoid::regclass::text, t.error from jobq_private.attempt as t
        where t.job_id = %L', :'failed'
    ),
    format($$ values (%L, 'boom') $$, pg_temp.partition('attempt', 0)),
    'so do attempts'
);
select is(
    (select l.tableoid::regclass::text from jobq_private.job_log as l
    where l.job_id = :'early'),
    pg_temp.partition('job_log', 0), 'and logs'
);
select is_empty(
    'select from jobq_private.job_archive_default union all
    select from jobq_private.attempt_default union all
    select from jobq_private.job_log_default',
    'the default partitions are empty again'
);
select is(
    pg_temp.place_of(pg_temp.finished()), pg_temp.partition('job_archive', 0),
    'a job that finishes now goes to today''s partition at once'
);

-- The rules hold in every partition
select throws_ok(
    format('update %s set payload = ''{}''', pg_temp.partition('job_archive', 0)),
    'JQ002', null, 'a finished job cannot be changed by way of its partition'
);
select throws_ok(
    format('update %s set state = ''queued'' where job_id = %L',
        pg_temp.partition('job_archive', 0), :'early'),
    '23503', null, 'nor brought back illegally'
);
select jobq.redrive(:'failed');
select is(
    (jobq.get_job(:'failed')).state::text, 'queued',
    'a job is redriven from its partition'
);

-- A partition that is missing
select pg_temp.finished() as kept \gset
do $$
begin
    execute format('drop table %s', pg_temp.partition('job_archive', 0));
    execute format('drop table %s', pg_temp.partition('attempt', 0));
end
$$;
select pg_temp.finished('boom') as without \gset
select is(
    pg_temp.place_of(:'without'), 'jobq_private.job_archive_default',
    'a job finishes also while today''s partition is missing'
);
select is(pg_temp.maintained('made_partitions'), 2::bigint, 'it is made again');
select is(
    pg_temp.place_of(:'without'), pg_temp.partition('job_archive', 0),
    'and takes the job'
);

-- Days that nobody made ready, long gone when maintenance comes back
create function pg_temp.age(job_id uuid, days integer)
returns void
language plpgsql
as $$
begin
    set local session_replication_role = replica;
    update jobq_private.job_archive as a
    set finished_at = a.finished_at - make_interval(days => age.days)
    where a.job_id = age.job_id;
    set local session_replication_role = origin;
end
$$;
select pg_temp.finished() as late, pg_temp.finished() as ancient,
    pg_temp.finished() as edge \gset
select pg_temp.age(:'late', 3), pg_temp.age(:'edge', 30), pg_temp.age(:'ancient', 31);
select is(
    pg_temp.place_of(:'late'), 'jobq_private.job_archive_default',
    'a day without a partition'
);
select is(
    array(select pg_temp.maintained('made_partitions') from generate_series(1, 4)),
    '{1,1,1,0}', 'gets one when maintenance comes'
);
select is(
    pg_temp.place_of(:'late'), pg_temp.partition('job_archive', -3),
    'which takes its jobs'
);

-- Retention
select is(
    pg_temp.place_of(:'ancient'), null,
    'so that what is past retention goes all the same'
);
select is(
    pg_temp.place_of(:'edge'), pg_temp.partition('job_archive', -30),
    'a day of which retention has not wholly passed stays'
);
select is(
    to_regclass(pg_temp.partition('job_archive', -31)), null,
    'one that has passed is dropped'
);
select jobq.configure(retention => '2 days', key_retention => '1 day');
select is(
    array(select pg_temp.maintained('dropped_partitions') from generate_series(1, 3)),
    '{1,1,0}', 'retention is a setting'
);
select is_empty(
    format('select from jobq.job where job_id in (%L, %L)', :'late', :'edge'),
    'the jobs of a dropped day are gone'
);
select is(
    to_regclass(pg_temp.partition('job_archive', 0)) is not null, true, 'today stays'
);

-- A retention that has become much shorter
select count(jobq_private.make_partition('job_log', now()::date - n))
from generate_series(20, 45) as n;
select is(
    (select sum(pg_temp.maintained('dropped_partitions')) from generate_series(1, 30)),
    26::numeric, 'of many days one goes in each transaction'
);

-- Beside relations with other names: Django calls an index like this
create temporary table auth_user_groups_group_id_97559544 (id integer);
set local enable_nestloop = off;
select is(
    jobq_private.drop_partitions(), 0::bigint,
    'no name of another relation is read as a date'
);
reset enable_nestloop;

-- By UTC, whatever the caller's zone
set local timezone = 'Pacific/Kiritimati';
select is(
    pg_temp.maintained('made_partitions'), 0::bigint,
    'days are days of UTC, for every caller'
);
set local timezone = 'Pacific/Pago_Pago';
select is(pg_temp.maintained('dropped_partitions'), 0::bigint, 'in every zone');

select * from finish();
rollback;
