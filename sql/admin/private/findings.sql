-- Purpose: what the function PART_health() finds, for part_health().
create or replace function jobq_private.findings(
    part text, client_time timestamptz, release text
)
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
as $$
    select h.* from jobq_private.server_health() as h where part = 'server'
    union all
    select h.* from jobq_private.vacuum_health() as h where part = 'vacuum'
    union all
    select h.* from jobq_private.replication_health() as h where part = 'replication'
    union all
    select h.* from jobq_private.trial_health() as h where part = 'trial'
    union all
    select h.* from jobq_private.locks_health() as h where part = 'locks'
    union all
    select h.* from jobq_private.settings_health() as h where part = 'settings'
    union all
    select h.* from jobq_private.jobs_health() as h where part = 'jobs'
    union all
    select h.* from jobq_private.workers_health() as h where part = 'workers'
    union all
    select h.* from jobq_private.maintenance_health() as h where part = 'maintenance'
    union all
    select h.* from jobq_private.schema_health(release) as h where part = 'schema'
    union all
    select h.* from jobq_private.clock_health(client_time) as h where part = 'clock'
$$;
