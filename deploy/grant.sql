-- Deploy jobq:grant to pg
\set script `python3 -IS sql/render.py deploy grant`
select 1 / (:'script' <> '')::int as rendered \gset
:script
