-- Purpose: return the job that an idempotency key stands for: this one, or an earlier one.
-- Invariant: the primary key of the keys decides between concurrent callers. A free key passes to
-- the new job once, since it then stands for a live job.
create or replace function jobq_private.take_idempotency_key(
    kind text, queue text, idempotency_key text, job_id uuid
)
returns uuid
language plpgsql
as $$
declare
    _holder uuid;
begin
    loop
        insert into jobq_private.idempotency_key as k (kind, idempotency_key, job_id)
        values (
            take_idempotency_key.kind, take_idempotency_key.idempotency_key,
            take_idempotency_key.job_id
        )
        on conflict on constraint idempotency_key_pkey do nothing;
        if not found then
            update jobq_private.idempotency_key as k
            set job_id = take_idempotency_key.job_id, created_at = now()
            where k.kind = take_idempotency_key.kind
            and k.idempotency_key = take_idempotency_key.idempotency_key
            and jobq_private.is_key_free(
                k.kind, take_idempotency_key.queue, k.job_id, k.created_at
            );
        end if;
        if found then
            return take_idempotency_key.job_id;
        end if;
        select k.job_id into _holder
        from jobq_private.idempotency_key as k
        where k.kind = take_idempotency_key.kind
        and k.idempotency_key = take_idempotency_key.idempotency_key;
        if found then
            return _holder;
        end if;
    end loop;
end
$$;
