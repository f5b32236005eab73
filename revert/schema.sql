-- Revert jobq:schema from pg, after @v1.0.0
\set script `python3 -IS sql/render.py revert schema`
select 1 / (:'script' <> '')::int as rendered \gset
:script
