-- Deploy jobq:error to pg
-- Made by sql/snapshot.py from sql/error/: edit that.
begin;
set local role jobq_owner;

-- Purpose: raise the error with this symbolic code, in the words of jobq_private.error.
-- Invariant: message and hint are static; values stand in DETAIL alone. The symbolic code
-- travels in the error's CONSTRAINT field. Raises: the SQLSTATE of the code.
create or replace function jobq_private.raise_error(code text, detail text)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _error jobq_private.error;
begin
    select e.* into strict _error
    from jobq_private.error as e
    where e.code = raise_error.code;

    raise exception using
        errcode = _error.sqlstate,
        message = _error.message,
        detail = raise_error.detail,
        hint = _error.hint,
        constraint = _error.code;
end
$$;

revoke all on function jobq_private.raise_error from public;

comment on function jobq_private.raise_error is
'Raises the error with this symbolic code, with the values in DETAIL.';

-- Purpose: the errors that jobq raises, for people and for the HTTP API.
-- Invariant: the one list; clients map by sqlstate and code, never by text.
-- Column message: the fixed text.
create or replace view jobq.error as
select e.code, e.sqlstate, e.http_status, e.message, e.hint
from jobq_private.error as e;

revoke all on jobq.error from public;
grant select on jobq.error to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on view jobq.error is
'Every error of jobq: symbolic code, SQLSTATE, HTTP status, message and hint.';

commit;
