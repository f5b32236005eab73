-- Verify jobq:shard on pg, after @v1.1.0
\set script `python3 -IS sql/render.py verify shard`
select 1 / (:'script' <> '')::int as rendered \gset
:script
