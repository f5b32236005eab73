-- Deploy jobq:job to pg
\set script `python3 -IS sql/render.py deploy job`
select 1 / (:'script' <> '')::int as rendered \gset
:script
