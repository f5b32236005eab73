-- Verify jobq:audit on pg
\set script `python3 -IS sql/render.py verify audit`
select 1 / (:'script' <> '')::int as rendered \gset
:script
