-- Verify jobq:limit on pg
\set script `python3 -IS sql/render.py verify limit`
select 1 / (:'script' <> '')::int as rendered \gset
:script
