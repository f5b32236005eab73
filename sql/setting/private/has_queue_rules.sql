-- Purpose: whether any queue says, or has ever said, anything that enqueue() goes by.
-- Invariant: a constant, so that who has no such queue pays for no look at the table; the first
-- that says something has it written anew (note_rules()), upon which sessions plan anew, and it
-- stays. As with defaults(), a transaction that has enqueued before may do so without it until
-- it ends. Stable for that, and without a SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.has_queue_rules
do $do$
begin
    if to_regprocedure('jobq_private.has_queue_rules()') is null then
        execute format(
            'create function jobq_private.has_queue_rules() returns boolean '
            'language sql stable parallel safe security invoker as %L',
            'select ' || exists (
                select from jobq_private.queue as k
                where num_nonnulls(
                    k.priority, k.max_attempts, k.timeout, k.lease, k.max_depth
                ) > 0
            )
        );
    end if;
end
$do$;

revoke all on function jobq_private.has_queue_rules() from public;

comment on function jobq_private.has_queue_rules() is
'Whether any queue has ever said anything that enqueue() goes by.';
