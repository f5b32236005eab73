-- Purpose: raise the error with this symbolic code.
-- Invariant: message and hint are static; values are in DETAIL, the code in CONSTRAINT. Raises
-- even if the row of the code is missing. Raises: the SQLSTATE of the code.
create or replace function jobq_private.raise_error(code text, detail text)
returns void language plpgsql stable as $$
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
