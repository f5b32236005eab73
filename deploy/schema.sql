-- Deploy jobq:schema to pg, after @v1.0.0
\set script `python3 -IS sql/render.py deploy schema`
select 1 / (:'script' <> '')::int as rendered \gset
:script
