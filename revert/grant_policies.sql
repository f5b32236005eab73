-- Revert jobq:grant_policies from pg
begin;

do $$
declare
    _policy record;
begin
    for _policy in
        select p.policyname, p.tablename
        from pg_catalog.pg_policies as p
        where p.schemaname = 'jobq_private'
    loop
        execute format('drop policy %I on jobq_private.%I', _policy.policyname, _policy.tablename);
    end loop;
end
$$;

commit;
