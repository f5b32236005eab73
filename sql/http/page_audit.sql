-- Purpose: Returns a page of the audit log as JSON documents, newest first; cursor continues it.
-- Invariant: a descent of the primary key; reads at most the newest 20,000 rows.
-- Raises: 22004, 22023.
-- Argument subject: only actions on this job, queue or other subject; null means all.
-- Argument max_rows: maximum number, 1 to 1000.
-- Column item: a JSON object: audit_id, acted_at, actor, acting_for, application, action,
-- subject, reason.
-- Example: select * from jobq_http.page_audit();
create or replace function jobq_http.page_audit(
    before bigint default null, subject text default null, max_rows integer default 50
)
returns table (item json, cursor bigint) language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    perform jobq_private.check_count('max_rows', page_audit.max_rows, 1, 1000);
    return query
    select
        row_to_json(t), case when lead(t.audit_id) over rest is not null then t.audit_id end
    from (
        select l.*
        from (
            select a.audit_id, a.acted_at, a.actor, a.acting_for, a.application, a.action,
                a.subject, a.reason
            from jobq_private.audit as a
            where page_audit.before is null or a.audit_id < page_audit.before
            order by a.audit_id desc
            limit 20000
        ) as l
        where page_audit.subject is null or l.subject = page_audit.subject
        order by l.audit_id desc
        limit page_audit.max_rows + 1
    ) as t
    window rest as (order by t.audit_id desc)
    order by t.audit_id desc
    limit page_audit.max_rows;
end
$$;
grant execute on function jobq_http.page_audit to jobq_operator;
