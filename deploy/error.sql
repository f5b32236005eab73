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

-- Purpose: an error as it is stored: without user names and passwords of URLs, tokens, and
-- what follows a name such as password; without e-mail addresses where settings say so; cut
-- at 512 characters.
-- Invariant: looks at the first 8,192 characters. Raises: nothing.
create or replace function jobq_private.redacted(error text)
returns text
language sql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select left(
        case when g.redact_emails
            then regexp_replace(n.text, '[\w.+-]+@[\w-]+(\.[\w-]+)+', '***', 'g')
            else n.text
        end, 512
    )
    from jobq_private.setting as g
    cross join lateral (
        select regexp_replace(
            left(redacted.error, 8192), '(?<=://)[^/\s@''"]+(?=@)', '***', 'g'
        ) as text
    ) as u
    cross join lateral (
        select regexp_replace(
            u.text, '\y(bearer|basic|digest|token)\s+[-\w.~+/=]{8,}', '\1 ***', 'gi'
        ) as text
    ) as c
    cross join lateral (
        select regexp_replace(
            c.text,
            '((?:authorization|cookie|pass(?:word|wd|phrase)?|secret|token|api[-_]?key|'
            'access[-_]?key|private[-_]?key)[\w-]*["'']?\s*[:=]\s*)'
            '(?:"[^"]*"|''[^'']*''|[^\s,;&)}\]]+)',
            '\1***', 'gi'
        ) as text
    ) as n
$$;

revoke all on function jobq_private.redacted from public;

comment on function jobq_private.redacted is
'Returns an error as it is stored: without passwords, tokens and the like.';

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
