-- Purpose: once a kind or queue says something that enqueue() goes by, that looks for it.
-- Invariant: written down with the first that does, in one commit, whoever writes the row; by
-- maintain() where triggers were disabled.
-- Raises: nothing.
create or replace function jobq_private.note_rules()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not (
        case tg_table_name
            when 'kind' then jobq_private.has_kind_rules()
            else jobq_private.has_queue_rules()
        end
    )
    then
        perform jobq_private.write_constants();
    end if;
    return null;
end
$$;

revoke all on function jobq_private.note_rules from public;

comment on function jobq_private.note_rules is
'Notes that a kind or queue says something that enqueue() goes by.';

create or replace trigger kind_rules
after insert or update on jobq_private.kind
for each row execute function jobq_private.note_rules();

alter table jobq_private.kind enable always trigger kind_rules;

create or replace trigger queue_rules
after insert or update on jobq_private.queue
for each row execute function jobq_private.note_rules();

alter table jobq_private.queue enable always trigger queue_rules;
