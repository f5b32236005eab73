-- Purpose: the first key of each class of advisory locks; all that jobq takes are here. waiting
-- and producing are W and P of docs/contributing/design.md. Inlined, so no SET clause.
create or replace function jobq_private.lock_class(name text)
returns integer language sql immutable as $$
    select case name
        when 'waiting' then 1785684593
        when 'producing' then 1785684594
        when 'maintaining' then 1785684595
        when 'ending' then 1785684596
        when 'emitting' then 1785684597
        when 'closing' then 1785684598
        when 'making' then 1785684600
        when 'expecting' then 1785684610
        when 'joining' then 1785684611
        when 'awaiting' then 1785684612
        when 'awaiting_events' then 1785684613
        when 'streaming' then 1785684614
    end
$$;
