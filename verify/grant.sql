-- Verify jobq:grant on pg
\set script `python3 -IS sql/render.py verify grant`
select 1 / (:'script' <> '')::int as rendered \gset
:script
