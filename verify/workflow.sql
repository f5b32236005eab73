-- Verify jobq:workflow on pg
\set script `python3 -IS sql/render.py verify workflow`
select 1 / (:'script' <> '')::int as rendered \gset
:script
