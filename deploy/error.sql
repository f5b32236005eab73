-- Deploy jobq:error to pg
\set script `python3 -IS sql/render.py deploy error`
select 1 / (:'script' <> '')::int as rendered \gset
:script
