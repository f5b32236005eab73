-- Verify jobq:setting on pg
\set script `python3 -IS sql/render.py verify setting`
select 1 / (:'script' <> '')::int as rendered \gset
:script
