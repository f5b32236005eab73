-- Deploy jobq:audit to pg
\set script `python3 -IS sql/render.py deploy audit`
select 1 / (:'script' <> '')::int as rendered \gset
:script
