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

-- Purpose: a text without passwords and the like: what stands before the @ of a URL, tokens
-- after the name of a scheme, cookies, and what follows a name such as password, as a member,
-- a parameter or an option.
-- Invariant: jobq.redaction in the Python package hides the same. A text in which none of the
-- words occurs costs one look. Raises: nothing.
create or replace function jobq_private.redacted_text(given text)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    _value constant text := '(?:"[^"]*"|''[^'']*''|\[[^\]]*\]|[^\s,;&)}\]]+)';
    _text text := given;
begin
    if not given ~* '://|pass|pwd|secret|token|key|credential|cookie|authorization|sig|bearer|basic|digest|negotiate|ntlm|hawk' then
        return given;
    end if;
    _text := regexp_replace(_text,
        '(?<=://)(?:[^/\s@''":]*:(?!\d+(?:[/?#]|$))[^\s''"]*|[^/\s''"]+)(?=@)', '***', 'g');
    _text := regexp_replace(_text,
        '(cookie["'']?\s*[:=]\s*)(?:"[^"]*"|''[^'']*''|[^\r\n"'']+)', '\1***', 'gi');
    _text := regexp_replace(_text,
        '(authorization["'']?\s*[:=]\s*)'
        || '(?:"[^"]*"|''[^'']*''|(?:[a-z][\w-]*\s+)?[^\s,;&)}\]]+)', '\1***', 'gi');
    _text := regexp_replace(_text,
        '\y(bearer|basic|digest|token|apikey|negotiate|ntlm|hawk)\s+[-\w.~+/=]{8,}',
        '\1 ***', 'gi');
    _text := regexp_replace(_text,
        '((?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|api[-_]?key|'
        || 'access[-_]?key|private[-_]?key)[\w-]{0,64}["'']?\s*[:=]\s*)' || _value,
        '\1***', 'gi');
    _text := regexp_replace(_text, '(\y(?:key|sig|signature)=)' || _value, '\1***', 'gi');
    return regexp_replace(_text,
        '((?<![\w-])--[\w-]{0,64}(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)\s+)'
        || '(?:"[^"]*"|''[^'']*''|\S+)', '\1***', 'gi');
end
$$;

revoke all on function jobq_private.redacted_text from public;

comment on function jobq_private.redacted_text is
'Returns a text without passwords, tokens and the like.';

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
set standard_conforming_strings = on
as $$
    select left(
        case when g.redact_emails
            then regexp_replace(n.text, '[\w.+-]+@[\w-]+(\.[\w-]+)+', '***', 'g')
            else n.text
        end, 512
    )
    from jobq_private.setting as g
    cross join lateral jobq_private.redacted_text(left(redacted.error, 8192)) as n (text)
$$;

revoke all on function jobq_private.redacted from public;

comment on function jobq_private.redacted is
'Returns an error as it is stored: without passwords, tokens and the like.';

-- Purpose: JSON without passwords and the like: its texts as redacted_text() has them, and no
-- texts, arrays or objects under a name such as password.
-- Invariant: numbers, true and false stay. Raises: nothing.
create or replace function jobq_private.redacted_json(value jsonb)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return case jsonb_typeof(value)
        when 'string' then to_jsonb(jobq_private.redacted_text(value #>> '{}'))
        when 'array' then (
            select coalesce(jsonb_agg(jobq_private.redacted_json(e.item) order by e.n), '[]')
            from jsonb_array_elements(value) with ordinality as e (item, n)
        )
        when 'object' then (
            select coalesce(jsonb_object_agg(m.key, case
                when jsonb_typeof(m.item) in ('string', 'array', 'object')
                    and m.key ~* '(pass(word|wd|phrase)|^pass$|pwd|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|authorization|cookie)'
                then '"***"'::jsonb
                else jobq_private.redacted_json(m.item)
            end), '{}')
            from jsonb_each(value) as m (key, item)
        )
        else value
    end;
end
$$;

revoke all on function jobq_private.redacted_json from public;

comment on function jobq_private.redacted_json is
'Returns JSON without passwords, tokens and the like.';

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
