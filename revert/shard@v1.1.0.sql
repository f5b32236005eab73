-- Revert jobq:shard from pg, after @v1.0.0
\set script `python3 -IS sql/render.py revert shard@v1.1.0`
select 1 / (:'script' <> '')::int as rendered \gset
:script
