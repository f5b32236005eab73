-- Purpose: the checks of health(): how bad a problem is, what is said, and what to do.
-- Column part: the function PART_health(), which returns findings.
-- Column fine: what is said without a finding; null if the function always says it.
-- Column found: the text around the findings. Findings that are sentences have no text.
-- Column remedy: what to do; null if the function says it.
create or replace view jobq_private.health_check as
select c.*
from (
    values
    ('server', 'fsync', 'failure', null, '%s',
        'set fsync = on: otherwise a crash can lose acknowledged jobs'),
    ('server', 'synchronous_commit', 'failure', null, '%s',
        'set synchronous_commit = on: otherwise a crash can lose acknowledged jobs'),
    ('server', 'full_page_writes', 'failure', null, '%s',
        'set full_page_writes = on: otherwise a crash can lose acknowledged jobs'),
    ('server', 'autovacuum', 'warning', null, '%s',
        'set autovacuum = on: otherwise bloat grows'),
    ('server', 'connections', 'warning', null, '%s',
        'end unused sessions, run fewer workers, or use PgBouncer'),
    ('server', 'notifications', 'warning', null, '%s',
        'end the listening session that is idle in a transaction'),
    ('vacuum', 'snapshot', 'warning', 'nothing holds back vacuum', '%s',
        'end the session, drop the replication slot, or finish the prepared transaction'),
    ('vacuum', 'dead_tuples', 'warning', null, '%s',
        'end what holds back vacuum (see snapshot), then vacuum jobq_private.job'),
    ('vacuum', 'table_autovacuum', 'warning', 'autovacuum is on for all tables',
        'autovacuum is off for %s', 'alter table … reset (autovacuum_enabled), then vacuum it'),
    ('vacuum', 'transaction_ids', 'failure', null, '%s',
        'end what holds back vacuum (see snapshot), then vacuum (freeze) the database'),
    ('vacuum', 'multixact', 'failure', null, '%s',
        'let autovacuum finish, or vacuum (freeze) the tables it has not processed'),
    ('vacuum', 'multixact_members', 'failure', null, '%s',
        'vacuum (freeze) tables that many sessions lock; at 4 billion all writes fail'),
    ('replication', 'standby', 'warning', 'this is a primary', '%s',
        'connect to the primary: list all hosts in the URL, with target_session_attrs=read-write'),
    ('replication', 'wal', 'warning', 'no replication slot retains WAL', '%s',
        'let the reader of the slot catch up, drop the slot, or set max_slot_wal_keep_size, before'
        ' the disk is full and all writes fail'),
    ('replication', 'failover', 'warning', null, '%s',
        'set synchronous_standby_names (with Patroni synchronous_mode): a failover loses commits'
        ' that were acknowledged but have not reached the standby'),
    ('replication', 'confirmation', 'failure', 'every required standby is connected', '%s',
        'start the standby, or remove it from synchronous_standby_names'),
    ('replication', 'publication', 'warning',
        'no publication contains the tables of live jobs', 'published: %s',
        'alter publication … drop table, unless you are migrating the database: each change of a'
        ' job is decoded and sent'),
    ('locks', 'locks', 'failure', 'no table is locked', '%s',
        'end the session that holds the lock: select pg_terminate_backend(PID)'),
    ('settings', 'role_settings', 'failure', 'no role or database setting endangers jobs', '%s',
        null),
    ('settings', 'connect', 'warning', null, '%s', null),
    ('jobs', 'leases', 'failure', null, '%s',
        'start a worker, or call maintain() every few seconds'),
    ('jobs', 'queues', 'failure', 'every queue with due jobs has a live worker',
        'no live worker serves %s',
        'start a worker for these queues, or call work() if their kinds are functions'),
    ('jobs', 'kinds', 'warning', 'every kind with due jobs has a worker that handles it',
        'no live worker has a handler for %s',
        'start a worker with handlers, or drivers and keys, for these kinds'),
    ('jobs', 'waiting', 'warning', 'no job has been due for 5 minutes', '%s',
        'resume the queue or kind, release the key, raise the limit, or start more workers;'
        ' jobq explain JOB_ID shows all reasons'),
    ('jobs', 'moves', 'failure', 'no move to another shard was interrupted', '%s', null),
    ('jobs', 'rows', 'failure', 'every live job is in a valid state',
        '%2$s live jobs bypassed the triggers, as %1$s',
        'maintain() repairs what it can; delete the others as jobq_owner, see operations'),
    ('workers', 'workers', 'failure', null, '%s', 'start a worker'),
    ('workers', 'functions', 'warning', 'every function of a kind exists', '%s',
        'create the function, allow the login of a worker to run it, or change the kind with'
        ' put_kind()'),
    ('workers', 'slots', 'warning', 'no handler hangs after its timeout', '%s',
        'add timeouts inside these handlers, or use process=True'),
    ('workers', 'endpoints', 'warning',
        'no paused endpoint has had deliveries due for 5 minutes', '%s',
        'fix the endpoint, then call resume_endpoint()'),
    ('maintenance', 'maintenance', 'failure', 'no task has failed', '%s',
        'fix the cause of the error, or end that session; maintain() retries at each call'),
    ('maintenance', 'schedules', 'warning', 'all schedules fire', '%s',
        'fix the cause of the error, or change or retire the schedule; it is retried each minute,'
        ' and others fire'),
    ('maintenance', 'partitions', 'warning', null, '%s',
        'call maintain(); until then finished jobs go to the default partition'),
    ('clock', 'clock', 'warning', null, '%s',
        'synchronize both clocks by NTP: leases and due times use the database''s clock'),
    ('trial', 'trial', 'failure', null, '%s', null),
    ('schema', 'release', 'warning', null, '%s',
        'run jobq deploy of the release that workers and clients use')
) as c (part, subject, severity, fine, found, remedy)
union all
select 'schema', s.subject, 'failure', s.fine, '%2$s objects differ from the deployed schema: %1$s',
    'run jobq deploy of the release that workers and clients use; it repairs everything except'
    ' tables and columns, which it lists'
from (
    values
    ('schema', 'the schema is unchanged since its deployment'),
    ('indexes', 'every index exists and is valid'),
    ('constraints', 'every constraint and foreign key exists'),
    ('triggers', 'every trigger exists and is enabled'),
    ('owners', 'jobq_owner owns everything'),
    ('grants', 'every role has its privileges'),
    ('public', 'PUBLIC has no privileges of jobq''s roles')
) as s (subject, fine);
