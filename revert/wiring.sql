-- Revert jobq:wiring from pg
\set script `python3 -IS sql/render.py revert wiring`
select 1 / (:'script' <> '')::int as rendered \gset
:script
