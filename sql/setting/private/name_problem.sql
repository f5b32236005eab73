-- Purpose: what is wrong with the name of a queue or a kind, or null. The constraints of the tables
-- check the same. Inlined, so no SET clause.
create or replace function jobq_private.name_problem(what text, name text)
returns text
language sql
immutable
as $$
    select case
        when what = 'queue' and pg_catalog.right(name, 1) = '*'
        then 'queue must have 1 to 128 printable characters, not ending in *'
        when pg_catalog.length(name) not between 1 and 128 or name ~ '[[:cntrl:]]'
        then what || ' must have 1 to 128 printable characters'
    end
$$;
