-- Verify jobq:error on pg
\set script `python3 -IS sql/render.py verify error`
select 1 / (:'script' <> '')::int as rendered \gset
:script
