-- Purpose: hook, called when attempts and jobs end, or jobs are deleted, with those that features
-- may have to follow.
create or replace function jobq_private.on_end(endings jobq_private.ending[])
returns void language plpgsql as $$
begin
end
$$;
