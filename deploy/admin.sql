-- Deploy jobq:admin to pg, after @v1.1.0
\set script `python3 -IS sql/render.py deploy admin`
select 1 / (:'script' <> '')::int as rendered \gset
:script
