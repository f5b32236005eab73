-- Purpose: Asks for notifications when chunks are added to a job's streams, and when it
-- ends; returns true if it has ended. The session must listen.
-- Invariant: LISTEN jobq_stream and LISTEN jobq_ended have committed before. As wait(): the
-- session's shared locks are taken before the client reads the stream. An append in
-- progress may not see them, so the client reads again within 250 ms. Raises: 22004, JQ001.
-- Returns: true if it has already ended; otherwise the job's id is sent on jobq_stream at
-- each append, and on jobq_ended at the end.
-- Example: select jobq.await_stream(:'running');
create or replace function jobq.await_stream(job_id uuid)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _streaming constant integer := jobq_private.lock_class('streaming');
    _is_ended constant boolean := jobq.wait(await_stream.job_id);
begin
    perform pg_advisory_lock_shared(_streaming, 1024);
    perform pg_advisory_lock_shared(_streaming, hashtext(await_stream.job_id::text) & 1023);
    return _is_ended;
end
$$;
grant execute on function jobq.await_stream
to jobq_producer, jobq_worker, jobq_operator, jobq_reader;
