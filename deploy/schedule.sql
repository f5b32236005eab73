-- Deploy jobq:schedule to pg
\set script `python3 -IS sql/render.py deploy schedule`
select 1 / (:'script' <> '')::int as rendered \gset
:script
