-- Revert jobq:work from pg
\set script `python3 -IS sql/render.py revert work`
select 1 / (:'script' <> '')::int as rendered \gset
:script
