-- Purpose: raise a violated constraint of a declaration as a typed error. Its name is the detail;
-- without a constraint, a priority did not fit its column. Raises: 22023.
create or replace function jobq_private.refuse_setting(violated text)
returns void language sql stable as $$
    select jobq_private.raise_error('INVALID_ARGUMENT', coalesce(
        nullif(violated, ''), 'priority must be from -32768 to 32767'
    ))
$$;
