-- Purpose: return the job that an idempotency key stands for: this one, or an earlier one.
-- Invariant: the primary key of the keys decides between concurrent callers. A free key passes to
-- the new job once.
create or replace function jobq_private.hold_key(
    kind text, queue text, idempotency_key text, job_id uuid
)
returns uuid
language plpgsql
as $$
declare
    _holder uuid;
    _since timestamptz;
begin
    loop
        insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
        values (hold_key.kind, hold_key.idempotency_key, hold_key.job_id)
        on conflict on constraint idempotency_key_pkey do nothing;
        if found then
            return hold_key.job_id;
        end if;

        select k.job_id, k.created_at into _holder, _since
        from jobq_private.idempotency_key as k
        where k.kind = hold_key.kind
        and k.idempotency_key = hold_key.idempotency_key;
        if _holder = hold_key.job_id or (found and not jobq_private.is_key_free(
            hold_key.kind, hold_key.queue, _holder, _since
        )) then
            return _holder;
        end if;

        update jobq_private.idempotency_key as k
        set job_id = hold_key.job_id, created_at = now()
        where k.kind = hold_key.kind
        and k.idempotency_key = hold_key.idempotency_key
        and k.job_id = _holder;
        if found then
            return hold_key.job_id;
        end if;
    end loop;
end
$$;
