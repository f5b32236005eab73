-- Purpose: store which queue a kind belongs to, if the kind names one.
-- Invariant: policies need this for kinds that their reader may not see, and a policy
-- on kind hides those from every query; so policies read this table.
create or replace function jobq_private.copy_kind_queue()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op <> 'INSERT' then
        delete from jobq_private.kind_queue as o where o.kind = old.kind;
    end if;
    if tg_op <> 'DELETE' and new.queue is not null then
        insert into jobq_private.kind_queue (kind, queue) values (new.kind, new.queue);
    end if;
    return null;
end
$$;

create or replace trigger kind_queue
after insert or update or delete on jobq_private.kind
for each row execute function jobq_private.copy_kind_queue();
