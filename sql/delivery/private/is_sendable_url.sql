-- Purpose: whether the text of a URL can be sent: its length, and a host beyond ASCII as
-- clients encode it.
-- Invariant: a reference stands for a letter, since nobody knows yet what it brings.
-- Raises: nothing.
create or replace function jobq_private.is_sendable_url(url text)
returns boolean
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $$
declare
    -- Signs, blanks and what cannot be seen, by their blocks: no name of a host has them.
    _no_letter constant text := '[%_\u0080-\u00b6\u00b8-\u00bf\u00d7\u00f7\u034f\u061c\u115f\u1160'
        || '\u17b4\u17b5\u180b-\u180f\u2000-\u2bff\u2e00-\u2fff\u3000\u3001\ue000-\uf8ff'
        || '\ufe00-\ufe0f\ufeff\ufff0-\uffff\U0001f000-\U0001faff]';
    _misplaced constant text := '(^|[.])(-|(?![Xx][Nn]--)..--)|-([.]|$)';
    _host text := substring(
        regexp_replace(is_sendable_url.url, '\{\{.*?\}\}', 'x', 'g')
        from '^[Hh][Tt][Tt][Pp][Ss]?://([^]/?#:[]*)'
    );
begin
    return length(is_sendable_url.url) <= 8192 and (
        _host is null
        or octet_length(_host) = length(_host)
        or (
            _host is nfkc normalized
            and _host !~ _no_letter
            and _host !~ _misplaced
        )
    );
end
$$;

revoke all on function jobq_private.is_sendable_url from public;

comment on function jobq_private.is_sendable_url is
'Says whether the text of a URL can be sent: its length, and a host beyond ASCII.';
