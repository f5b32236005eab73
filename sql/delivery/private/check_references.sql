-- Purpose: refuse an endpoint with templates that refer to missing definitions, or use
-- a namespace where it is not allowed.
-- Invariant: config is allowed everywhere; input and job in templates, headers and after the host
-- of a URL; secrets in fields that are sent to the target or address it. Raises: JQ007.
create or replace function jobq_private.check_references(
    endpoint text, spec jsonb, config_entries jsonb
)
returns void language plpgsql stable as $$
declare
    _to_target constant text :=
        '^(url|headers|body_template|value_template|fields_template|bootstrap_servers'
        || '|redis_url|options|sign_with)$';
    _job constant text :=
        '^(id|attempt|created_at|run_at|endpoint|queue|idempotency_key)$';
    _problem text;
begin
    select format('endpoint %s: %s in %s %s', check_references.endpoint, r.written,
        r.field, case
            when r.namespace is null
                then 'is not {{input.path}}, {{config.path}}, {{secret.name}} or {{job.name}}'
            when r.namespace = 'name' then 'is the name of a member: references are allowed only in values'
            when r.namespace = 'config' then 'is not in the config'
            when r.namespace in ('input', 'job') then 'cannot be used here'
            when r.is_optional then 'cannot have a default'
            when r.field !~ _to_target then 'cannot be used here'
            else 'is not a secret'
        end)
    into _problem
    from jobq_private.template_references(check_references.spec) as r
    left join jobq_private.definition as s on s.type = r.namespace and s.name = r.path
    where case r.namespace
        when 'config' then
            r.is_optional or config_entries #> string_to_array(r.path, '.') is not null
        when 'input' then jobq_private.takes_input(r.field, spec)
        when 'job' then jobq_private.takes_input(r.field, spec) and r.path ~ _job
        when 'secret' then
            r.field ~ _to_target and not r.is_optional and s.name is not null
        else false
    end is not true
    order by r.field, r.written
    limit 1;
    perform jobq_private.check_problem('TEMPLATE_RESOLUTION_FAILED', _problem);
end
$$;
