-- Deploy jobq:work to pg
\set script `python3 -IS sql/render.py deploy work`
select 1 / (:'script' <> '')::int as rendered \gset
:script
