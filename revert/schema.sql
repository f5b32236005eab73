-- Revert jobq:schema from pg
\set script `python3 -IS sql/render.py revert schema`
select 1 / (:'script' <> '')::int as rendered \gset
:script
