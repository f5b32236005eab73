-- Revert jobq:work from pg, after @v1.1.0
\set script `python3 -IS sql/render.py revert work`
select 1 / (:'script' <> '')::int as rendered \gset
:script
