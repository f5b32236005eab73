-- Verify jobq:schemas on pg
begin;

select 1 / (
    has_schema_privilege('jobq_reader', 'jobq', 'usage')
    and has_schema_privilege('jobq_reader', 'jobq_http', 'usage')
    and not has_schema_privilege('jobq_reader', 'jobq', 'create')
    and not has_schema_privilege('jobq_worker', 'jobq_private', 'usage')
)::int;

rollback;
