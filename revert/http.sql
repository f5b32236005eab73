-- Revert jobq:http from pg
\set script `python3 -IS sql/render.py revert http`
select 1 / (:'script' <> '')::int as rendered \gset
:script
