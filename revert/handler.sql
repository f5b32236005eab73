-- Revert jobq:handler from pg
\set script `python3 -IS sql/render.py revert handler`
select 1 / (:'script' <> '')::int as rendered \gset
:script
