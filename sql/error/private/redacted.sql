-- Purpose: an error as it is stored: redacted_text() of its first 8,192 characters, without
-- e-mail addresses if the settings say so, cut at 512 characters.
create or replace function jobq_private.redacted(error text)
returns text language sql stable set standard_conforming_strings = on as $$
    select left(
        case when g.redact_emails
            then regexp_replace(n.text, '[\w.+-]+@[\w-]+(\.[\w-]+)+', '***', 'g')
            else n.text
        end, 512
    )
    from jobq_private.setting as g
    cross join lateral jobq_private.redacted_text(left(redacted.error, 8192)) as n (text)
$$;
