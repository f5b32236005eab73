-- Verify jobq:schedule on pg
\set script `python3 -IS sql/render.py verify schedule`
select 1 / (:'script' <> '')::int as rendered \gset
:script
