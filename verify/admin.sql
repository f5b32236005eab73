-- Verify jobq:admin on pg
\set script `python3 -IS sql/render.py verify admin`
select 1 / (:'script' <> '')::int as rendered \gset
:script
