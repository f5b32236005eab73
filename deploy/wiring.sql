-- Deploy jobq:wiring to pg
\set script `python3 -IS sql/render.py deploy wiring`
select 1 / (:'script' <> '')::int as rendered \gset
:script
