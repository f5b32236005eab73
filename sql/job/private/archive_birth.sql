-- Purpose: refuse a row of the archive whose job has not ended.
-- Invariant: queued stands in the archive only while a redrive takes the job out. The
-- WHEN clause keeps the function away from every job that succeeds: a row without a lane can be
-- no other, as an index sees to. It is short, since PostgreSQL reads its text again for every
-- statement. After the insert: a trigger before it would have the bounds of the partition checked.
-- Raises: JQ002.
create or replace function jobq_private.refuse_unfinished()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.state in ('succeeded', 'dead', 'cancelled') then
        return null;
    end if;
    perform jobq_private.raise_error('ILLEGAL_STATE', format(
        'job_id %s: no job is archived as %s', new.job_id, new.state
    ));
    return null;
end
$$;

revoke all on function jobq_private.refuse_unfinished from public;

comment on function jobq_private.refuse_unfinished is
'Refuses a row of the archive whose job has not ended.';

create or replace trigger archive_birth
after insert on jobq_private.job_archive
for each row when (new.lane is not null)
execute function jobq_private.refuse_unfinished();
