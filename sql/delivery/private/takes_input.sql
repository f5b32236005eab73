-- Purpose: whether a field of an endpoint's spec may contain input.
-- Invariant: in a URL only after its host, which never comes from input.
create or replace function jobq_private.takes_input(field text, spec jsonb)
returns boolean language plpgsql immutable set standard_conforming_strings = on as $$
declare
    _before text;
begin
    if takes_input.field <> 'url' then
        return takes_input.field ~ '^(headers|\w+_template)$';
    end if;
    _before := regexp_replace(
        takes_input.spec ->> 'url', '\{\{\s*(input|job)\M.*$', ''
    );
    _before := regexp_replace(_before, '^\{\{.*?\}\}', 'https://x');
    return regexp_replace(_before, '\{\{.*?\}\}', 'x', 'g') ~* '^https?://[^/?#]+[/?#]';
end
$$;
