-- Revert jobq:error from pg
\set script `python3 -IS sql/render.py revert error`
select 1 / (:'script' <> '')::int as rendered \gset
:script
