"""Write src/catalog.ts, the types of jobq's functions, from a database's catalog.

Usage: python clients/typescript/generate.py [--check] [DATABASE_URL]

Without a URL it starts a private PostgreSQL and installs jobq there.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

sys.path.append(str(Path(__file__).resolve().parents[2] / "docs"))

from reference import installed

TARGET = Path(__file__).parent / "src/catalog.ts"
# The functions that programs call which enqueue and work.
NAMES = """
    begin_wait cancel claim complete complete_many confirm_cancel due_in emit end_wait enqueue
    enqueue_many exchange fail fail_many get_job heartbeat list_steps log maintain maintain_in
    publish release release_many retire_worker save_step set_progress signal spend wait wait_for
""".split()
FUNCTIONS = """
    select p.proname, obj_description(p.oid, 'pg_proc'), format_type(p.prorettype, null),
        (select json_agg(json_build_array(
             a.name, format_type(a.type, null), coalesce(p.proargmodes[a.n], 'i'),
             a.n > p.pronargs - p.pronargdefaults) order by a.n)
         from unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]))
             with ordinality as a (name, type, n)),
        (select json_agg(json_build_array(a.attname, format_type(a.atttypid, null))
             order by a.attnum)
         from pg_attribute as a where a.attrelid = t.typrelid and a.attnum > 0)
    from pg_proc as p
    join pg_type as t on t.oid = p.prorettype
    where p.pronamespace = 'jobq'::regnamespace and p.proname = any(%s)
    order by p.proname
"""
TYPES = {
    "boolean": "boolean",
    "double precision": "number",
    "integer": "number",
    "interval": "Interval",
    "jsonb": "Json",
    "smallint": "number",
    "text": "string",
    "timestamp with time zone": "Date",
    "uuid": "string",
    "void": "null",
}
HEAD = """// Made by generate.py from the database's catalog; do not edit.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
/** As PostgreSQL writes it, such as "30 s"; what comes back depends on the driver's parser. */
export type Interval = string | object;
"""


def typed(name: str) -> str:
    """Return the TypeScript type of an SQL type."""
    if name.endswith("[]"):
        return f"{typed(name[:-2])}[]"
    return TYPES.get(name, "string")


def rendered(functions: list[tuple[Any, ...]]) -> str:
    """Return the module."""
    members, casts = [], []
    for name, comment, result, given, columns in functions:
        inputs = [a for a in given or [] if a[2] in "ib"]
        outputs = [a for a in given or [] if a[2] in "tob"] or columns or [(name, result)]
        arguments = "; ".join(
            f"{a[0]}{'?' if a[3] else ''}: {typed(a[1])}{' | null' if a[3] else ''}" for a in inputs
        )
        row = "; ".join(
            f"{a[0]}: {typed(a[1])}{'' if a[0] == name else ' | null'}" for a in outputs
        )
        members.append(
            f"  /** {comment} */\n  {name}: {{ given: {{ {arguments} }}; row: {{ {row} }} }};"
        )
        types = ", ".join(f'{a[0]}: "{a[1]}"' for a in inputs)
        casts.append(f"  {name}: {{ {types} }},")
    return (
        f"{HEAD}\nexport interface Functions {{\n" + "\n".join(members) + "\n}\n\n"
        "/** The SQL types of their arguments. */\n"
        "export const argumentTypes: {\n"
        "  [name in keyof Functions]: { [argument: string]: string }\n} = {\n"
        + "\n".join(casts)
        + "\n};\n"
    )


def main() -> int:
    """Write the file, or say whether it is stale."""
    options = [argument for argument in sys.argv[1:] if argument.startswith("-")]
    urls = [argument for argument in sys.argv[1:] if argument not in options]
    with ExitStack() as stack:
        url = urls[0] if urls else stack.enter_context(installed())
        with psycopg.connect(url) as connection:
            text = rendered(connection.execute(FUNCTIONS, [NAMES]).fetchall())
    if "--check" in options:
        is_stale = not TARGET.exists() or TARGET.read_text() != text
        if is_stale:
            print(f"{TARGET.name} is stale: run make docs", file=sys.stderr)  # noqa: T201
        return int(is_stale)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
