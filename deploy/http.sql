-- Deploy jobq:http to pg
\set script `python3 -IS sql/render.py deploy http`
select 1 / (:'script' <> '')::int as rendered \gset
:script
