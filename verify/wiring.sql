-- Verify jobq:wiring on pg
\set script `python3 -IS sql/render.py verify wiring`
select 1 / (:'script' <> '')::int as rendered \gset
:script
