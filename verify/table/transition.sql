-- Verify jobq:table/transition on pg
select 1 / (count(*) = 13)::int from jobq_private.transition;
