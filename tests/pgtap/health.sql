begin;
select plan(7);

-- A vacuum of what other scripts have rolled back may be at work, and maintenance would
-- leave partitions to its next call; this waits until it has given way.
lock table jobq_private.job_archive, jobq_private.attempt, jobq_private.job_log
in access exclusive mode;

select ok(
    not (select h.is_ok from jobq.health() as h where h.subject = 'workers'),
    'a queue that nobody works is not well'
);
select lives_ok(
    $$ select jobq.heartbeat('w', '{}', '{}', '{default}') $$, 'a worker says that it lives'
);
select ok(
    (select h.is_ok and h.remedy is null from jobq.health() as h where h.subject = 'workers'),
    'with a live worker it is well, and needs no remedy'
);

select lives_ok($$ select * from jobq.maintain() $$, 'partitions are made');
select ok(
    (select h.is_ok from jobq.health() as h where h.subject = 'partitions'),
    'with a partition for tomorrow the archive is ready'
);

select jobq.enqueue('k');
select jobq.claim('{default}', 'w');
set local session_replication_role = replica;
update jobq_private.job set lease_expires_at = now() - interval '1 min';
set local session_replication_role = origin;
select is(
    (select h.finding from jobq.health() as h where not h.is_ok and h.subject = 'leases'),
    '1 leases expired more than 10 s ago',
    'a lease that nobody takes back is named'
);

set local synchronous_commit = off;
select ok(
    (select h.remedy is not null from jobq.health() as h where h.subject = 'synchronous_commit'),
    'commits that do not wait for the disk are named, with the remedy'
);

select * from finish();
rollback;
