-- Verify jobq:schema/schemas on pg
select 1 / (
    has_schema_privilege('jobq_reader', 'jobq', 'usage')
    and not has_schema_privilege('jobq_reader', 'jobq', 'create')
    and not has_schema_privilege('jobq_worker', 'jobq_private', 'usage')
)::int;
