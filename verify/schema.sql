-- Verify jobq:schema on pg
\set script `python3 -IS sql/render.py verify schema`
select 1 / (:'script' <> '')::int as rendered \gset
:script
