-- Verify jobq:http on pg
\set script `python3 -IS sql/render.py verify http`
select 1 / (:'script' <> '')::int as rendered \gset
:script
