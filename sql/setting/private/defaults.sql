-- Purpose: what holds for a new job of which neither its kind nor its queue says anything.
-- Invariant: constants, so that an enqueue reads no table for them; setting has them, and
-- write_constants() writes this anew when it changes, upon which sessions plan anew. Stable for
-- that, and without a SET clause, so that it is inlined. Raises: nothing.
-- creates: function jobq_private.defaults
do $do$
begin
    perform jobq_private.write_constants();
end
$do$;

revoke all on function jobq_private.defaults() from public;

comment on function jobq_private.defaults() is
'What holds for a new job of which neither its kind nor its queue says anything.';
