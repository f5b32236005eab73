-- Deploy jobq:shard to pg, after @v1.1.0
\set script `python3 -IS sql/render.py deploy shard`
select 1 / (:'script' <> '')::int as rendered \gset
:script
