-- Purpose: refuse what is not the name of a state. Raises: 22023.
create or replace function jobq_private.check_states(states text[])
returns void language plpgsql stable as $$
declare
    _known constant text[] := array(
        select distinct t.to_state from jobq_private.transition as t order by t.to_state
    );
begin
    perform jobq_private.check_argument(case
        when not states <@ _known or array_position(states, null) is not null
        then 'state must be one of ' || array_to_string(_known, ', ')
    end);
end
$$;
