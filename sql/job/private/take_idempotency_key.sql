-- Purpose: return the job that an idempotency key stands for: this one, or an earlier one.
-- Invariant: the primary key of the keys decides between concurrent callers. A free key passes to
-- the new job once.
create or replace function jobq_private.take_idempotency_key(
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
        values (
            take_idempotency_key.kind, take_idempotency_key.idempotency_key,
            take_idempotency_key.job_id
        )
        on conflict on constraint idempotency_key_pkey do nothing;
        if found then
            return take_idempotency_key.job_id;
        end if;

        select k.job_id, k.created_at into _holder, _since
        from jobq_private.idempotency_key as k
        where k.kind = take_idempotency_key.kind
        and k.idempotency_key = take_idempotency_key.idempotency_key;
        if _holder = take_idempotency_key.job_id or (found and not jobq_private.is_key_free(
            take_idempotency_key.kind, take_idempotency_key.queue, _holder, _since
        )) then
            return _holder;
        end if;

        update jobq_private.idempotency_key as k
        set job_id = take_idempotency_key.job_id, created_at = now()
        where k.kind = take_idempotency_key.kind
        and k.idempotency_key = take_idempotency_key.idempotency_key
        and k.job_id = _holder;
        if found then
            return take_idempotency_key.job_id;
        end if;
    end loop;
end
$$;
