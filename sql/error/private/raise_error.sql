-- Purpose: raise the error with this symbolic code.
-- Invariant: message and hint are static; values are in DETAIL, the code in CONSTRAINT.
-- Raises: the SQLSTATE of the code.
create or replace function jobq_private.raise_error(code text, detail text)
returns void
language plpgsql
stable
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
