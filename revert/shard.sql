-- Revert jobq:shard from pg
\set script `python3 -IS sql/render.py revert shard`
select 1 / (:'script' <> '')::int as rendered \gset
:script
