-- Purpose: Lets the jobs of a held concurrency key, or of a held kind, start again, and
-- returns whether it was held.
-- Invariant: at once; limits continue to apply. Raises: 22004, 22023.
-- Argument kind: in place of a key.
-- Returns: whether it was held.
-- Example: select jobq.release_key('mail', 'customer-7');
create or replace function jobq.release_key(
    queue text, concurrency_key text default null, kind text default null
)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _was_held boolean;
begin
    perform jobq_private.check_given('queue and concurrency_key', num_nulls(
        release_key.queue, coalesce(release_key.concurrency_key, release_key.kind)
    ));
    perform jobq_private.check_argument(case
        when num_nonnulls(release_key.concurrency_key, release_key.kind) = 2
        then 'give concurrency_key or kind, not both'
    end);
    with released as (
        delete from jobq_private.limit_hold as h
        where h.limit_id = jobq_private.limit_id(
            release_key.queue, release_key.kind, release_key.concurrency_key
        )
        returning h.held_until
    )
    select coalesce(max(r.held_until) > clock_timestamp(), false) into _was_held
    from released as r;
    if _was_held then
        -- open ones, too: a claim may close them before this commits
        perform jobq_private.open_again(array(
            select w
            from jobq_private.waiting_key as w
            where w.queue = release_key.queue
            and case
                when release_key.kind is null then w.concurrency_key = release_key.concurrency_key
                else w.key_id = jobq_private.limit_id(null, release_key.kind, null)
            end
        ));
        perform jobq_private.wake(array[release_key.queue]);
        perform jobq_private.record_audit(
            'release_key', concat_ws(' ', queue, concurrency_key, 'kind ' || kind), null
        );
    end if;
    return _was_held;
end
$$;
grant execute on function jobq.release_key to jobq_operator;
