-- Revert jobq:schedule from pg
\set script `python3 -IS sql/render.py revert schedule`
select 1 / (:'script' <> '')::int as rendered \gset
:script
