-- Deploy jobq:setting to pg
\set script `python3 -IS sql/render.py deploy setting`
select 1 / (:'script' <> '')::int as rendered \gset
:script
