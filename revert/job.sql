-- Revert jobq:job from pg, after @v1.1.0
\set script `python3 -IS sql/render.py revert job`
select 1 / (:'script' <> '')::int as rendered \gset
:script
