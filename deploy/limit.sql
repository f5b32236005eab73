-- Deploy jobq:limit to pg
\set script `python3 -IS sql/render.py deploy limit`
select 1 / (:'script' <> '')::int as rendered \gset
:script
