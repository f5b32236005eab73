-- Revert jobq:error from pg
-- Made by sql/snapshot.py from sql/error/: edit that.
begin;
set local role jobq_owner;

drop view if exists jobq.error;
drop function if exists jobq_private.redacted_json;
drop function if exists jobq_private.redacted;
drop function if exists jobq_private.redacted_text;
drop function if exists jobq_private.raise_error;

commit;
