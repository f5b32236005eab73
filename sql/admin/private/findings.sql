-- Purpose: what the function PART_health() finds, for part_health().
create or replace function jobq_private.findings(part text, client_time timestamptz, release text)
returns setof jobq_private.finding language plpgsql as $$
begin
    case part
        when 'server' then return query select * from jobq_private.server_health();
        when 'vacuum' then return query select * from jobq_private.vacuum_health();
        when 'replication' then return query select * from jobq_private.replication_health();
        when 'trial' then return query select * from jobq_private.trial_health();
        when 'locks' then return query select * from jobq_private.locks_health();
        when 'settings' then return query select * from jobq_private.settings_health();
        when 'jobs' then return query select * from jobq_private.jobs_health();
        when 'workers' then return query select * from jobq_private.workers_health();
        when 'maintenance' then return query select * from jobq_private.maintenance_health();
        when 'schema' then return query select * from jobq_private.schema_health(release);
        when 'clock' then return query select * from jobq_private.clock_health(client_time);
    end case;
end
$$;
