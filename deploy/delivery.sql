-- Deploy jobq:delivery to pg
\set script `python3 -IS sql/render.py deploy delivery`
select 1 / (:'script' <> '')::int as rendered \gset
:script
