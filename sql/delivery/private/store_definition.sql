-- Purpose: store a checked payload spec, config or secret, and return it as a document.
-- Invariant: called under the lock of begin_definition(). An unchanged payload spec or config
-- stays as it is. Versions of secrets have only a checksum. Raises: 22004, 22023, JQ007.
create or replace function jobq_private.store_definition(
    type text, name text, document jsonb, ciphertext bytea default null, key_id text default null
)
returns json language plpgsql as $$
declare
    _violated text;
begin
    insert into jobq_private.definition as d (type, name, document, ciphertext, key_id, version)
    values (
        store_definition.type, store_definition.name, store_definition.document,
        store_definition.ciphertext, store_definition.key_id,
        jobq_private.record_version(
            store_definition.type, store_definition.name, case store_definition.type
                when 'payload_spec' then jsonb_build_object('schema', document)
                when 'config' then jsonb_build_object('values', document)
                else jsonb_build_object('sha256', encode(sha256(ciphertext), 'hex'))
            end
        )
    )
    on conflict on constraint definition_pkey do update
    set
        document = excluded.document, ciphertext = excluded.ciphertext,
        key_id = excluded.key_id, version = excluded.version, updated_at = now()
    where d.version <> excluded.version or d.type = 'secret';
    return jobq_internal.show_definition(store_definition.type, store_definition.name);
exception
    when check_violation then
        get stacked diagnostics _violated = constraint_name;
        perform jobq_private.refuse_setting(_violated);
        return null;
end
$$;
