-- Deploy jobq:error to pg
begin;
set local role jobq_owner;
set local check_function_bodies = off;

-- Purpose: raise an error if the caller has found a problem with an argument.
-- Raises: 22023.
create or replace function jobq_private.check_argument(problem text)
returns void
language sql
stable
parallel safe
as $$
    select jobq_private.check_problem('INVALID_ARGUMENT', problem)
$$;

-- Purpose: raise an error unless an argument is a number in a range.
-- Raises: 22004, 22023.
create or replace function jobq_private.check_count(
    name text, value integer, lowest integer, highest integer
)
returns void
language plpgsql
stable
parallel safe
as $$
begin
    perform jobq_private.check_given(name, num_nulls(value));
    perform jobq_private.check_argument(case when value not between lowest and highest
        then format('%s must be from %s to %s', name, lowest, highest) end);
end
$$;

-- Purpose: raise an error if any of these arguments is null; the caller counts them.
-- Raises: 22004.
create or replace function jobq_private.check_given(names text, nulls integer)
returns void
language plpgsql
stable
parallel safe
as $$
begin
    if nulls > 0 then
        perform jobq_private.raise_error('NULL_ARGUMENT', names);
    end if;
end
$$;

-- Purpose: raise the error with this code if the caller has found a problem, which is its detail.
-- Raises: the SQLSTATE of the code.
create or replace function jobq_private.check_problem(code text, problem text)
returns void
language plpgsql
stable
parallel safe
as $$
begin
    if problem is not null then
        perform jobq_private.raise_error(code, problem);
    end if;
end
$$;

-- Purpose: raise the error with this symbolic code.
-- Invariant: message and hint are static; values are in DETAIL, the code in CONSTRAINT. Raises even
-- if the row of the code is missing. Raises: the SQLSTATE of the code.
create or replace function jobq_private.raise_error(code text, detail text)
returns void
language plpgsql
stable
as $$
declare
    _error jobq_private.error;
begin
    select e.* into _error
    from jobq_private.error as e
    where e.code = raise_error.code;

    raise exception using
        errcode = coalesce(_error.sqlstate, 'raise_exception'),
        message = coalesce(_error.message, raise_error.code),
        detail = coalesce(raise_error.detail, ''),
        hint = coalesce(_error.hint, 'the row is missing in jobq_private.error'),
        constraint = raise_error.code;
end
$$;

-- Purpose: an error as it is stored: redacted_text() of its first 8,192 characters, without e-mail
-- addresses if the settings say so, cut at 512 characters.
create or replace function jobq_private.redacted(error text)
returns text
language sql
stable
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

-- Purpose: JSON without secrets: its texts as redacted_text() returns them, and nothing under a
-- name such as password except numbers and booleans.
create or replace function jobq_private.redacted_json(value jsonb)
returns jsonb
language plpgsql
stable
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

-- Purpose: a text without secrets: user information of URLs, tokens after the name of a scheme,
-- cookies, and what follows a name such as password. jobq.redaction in the Python package hides
-- the same.
create or replace function jobq_private.redacted_text(given text)
returns text
language plpgsql
stable
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

-- Purpose: Every error of jobq: symbolic code, SQLSTATE, HTTP status, message and hint.
-- Invariant: the only list of errors; clients match sqlstate and code, never text.
-- Column message: the static text.
create or replace view jobq.error as
select e.code, e.sqlstate, e.http_status, e.message, e.hint
from jobq_private.error as e;

grant select on jobq.error to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

comment on view jobq.error is 'Every error of jobq: symbolic code, SQLSTATE, HTTP status, message and hint.';

commit;
