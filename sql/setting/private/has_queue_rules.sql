-- Purpose: whether any queue says, or has ever said, anything that enqueue() goes by.
-- Invariant: a constant, so that who has no such queue pays for no look at the table; the first
-- that says something has it written anew (write_constants()), upon which sessions plan anew, and it
-- stays. As with defaults(), a transaction that has enqueued before may do so without it until
-- it ends. Stable for that, and without a SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.has_queue_rules
do $do$
begin
    perform jobq_private.write_constants();
end
$do$;

revoke all on function jobq_private.has_queue_rules() from public;

comment on function jobq_private.has_queue_rules() is
'Whether any queue has ever said anything that enqueue() goes by.';
