-- Revert jobq:grant from pg
\set script `python3 -IS sql/render.py revert grant`
select 1 / (:'script' <> '')::int as rendered \gset
:script
