-- Purpose: a text without secrets: user information of URLs, tokens after the name of a scheme,
-- cookies, and what follows a name such as password. jobq.redaction in the Python package hides
-- the same.
create or replace function jobq_private.redacted_text(given text)
returns text language plpgsql stable set standard_conforming_strings = on as $$
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
