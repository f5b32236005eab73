-- Revert jobq:audit from pg
\set script `python3 -IS sql/render.py revert audit`
select 1 / (:'script' <> '')::int as rendered \gset
:script
