-- Revert jobq:shard from pg, after @v1.1.0
\set script `python3 -IS sql/render.py revert shard`
select 1 / (:'script' <> '')::int as rendered \gset
:script
