"""What python/generate.py makes of the sources agrees with the database that they install."""

from __future__ import annotations

import dataclasses
import inspect
import os
import runpy
import tomllib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from jobq import Client, models
from jobq.calls import generated, options
from jobq.models.generated import Limit
from servers import ROOT, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Connection = psycopg.Connection[tuple[Any, ...]]

GENERATE = ROOT / "python" / "generate.py"
DECLARED = tomllib.loads((ROOT / "python" / "calls.toml").read_text())
METHODS = {name: said.partition(" -> ")[0] for name, said in DECLARED["methods"].items()}
RECORDS = {name: given[0] for name, given in DECLARED["records"].items()}
# Names, modes, and the columns of a composite result.
FUNCTION = """
    select coalesce(p.proargnames, '{}'), coalesce(p.proargmodes::text[], '{}'), p.pronargdefaults,
        array(
            select attname::text from pg_attribute as a
            where a.attrelid = t.typrelid and a.attnum > 0 order by a.attnum
        )
    from pg_proc as p
    join pg_type as t on t.oid = p.prorettype
    where p.proname = %s and p.pronamespace in ('jobq'::regnamespace, 'jobq_internal'::regnamespace)
"""
VIEW = """
    select array(
        select attname::text from pg_attribute where attrelid = %s::regclass and attnum > 0
        order by attnum
    )
"""


@pytest.fixture(scope="module")
def reader(cluster: Cluster) -> Iterator[Connection]:
    """A connection that all tests read the catalog with."""
    with cluster.database() as url, psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("method", METHODS)
def test_a_call_has_the_arguments_of_its_function(reader: Connection, method: str) -> None:
    [(names, modes, defaults, _)] = reader.execute(FUNCTION, [METHODS[method]]).fetchall()
    inputs = [n for n, mode in zip(names, modes or ["i"] * len(names), strict=True) if mode == "i"]
    parameters = inspect.signature(getattr(generated, method)).parameters.values()
    assert [parameter.name for parameter in parameters] == inputs
    optional = [p.name for p in parameters if p.default is not inspect.Parameter.empty]
    assert optional == inputs[len(inputs) - defaults :]


@pytest.mark.parametrize("function", DECLARED["positional"])
def test_the_options_of_a_function_are_its_arguments(reader: Connection, function: str) -> None:
    [(names, modes, *_)] = reader.execute(FUNCTION, [function]).fetchall()
    inputs = [n for n, mode in zip(names, modes or ["i"] * len(names), strict=True) if mode == "i"]
    [*_, last] = (name for name, (of, *_) in DECLARED["options"].items() if of == function)
    found = getattr(options, last).__annotations__
    assert {*DECLARED["positional"][function], *found} == {*inputs}
    described = [last]
    while (base := DECLARED["options"][described[-1]][1]) in DECLARED["options"]:
        described.append(base)
    words = models.words_of(*(getattr(options, name) for name in described))
    assert words.keys() == {*found}


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_has_the_columns_of_its_rows(reader: Connection, record: str) -> None:
    source = RECORDS[record]
    found = reader.execute(FUNCTION, [source]).fetchall()
    if found:
        [(names, modes, _, columns)] = found
        columns = columns or [n for n, mode in zip(names, modes, strict=True) if mode in "to"]
    else:
        [(columns,)] = reader.execute(VIEW, [f"jobq.{source}"]).fetchall()
    assert [field.name for field in dataclasses.fields(getattr(models, record))] == columns


def test_methods_show_what_the_sources_say() -> None:
    assert str(inspect.signature(Client.put_limit)).startswith("(self, /, queue: str,")
    said = inspect.getdoc(Client.resume) or ""
    assert said.startswith("Resumes claims from a queue")
    assert "\n    NotFound: " in said.partition("\nRaises:\n")[2]
    words = models.words_of(Limit)
    assert words.keys() == {field.name for field in dataclasses.fields(Limit)}
    assert words["max_running"].endswith("None means no limit.")


def test_they_are_written_again_when_a_source_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runpy.run_path(str(GENERATE))
    targets = {name: tmp_path / f"{name}.py" for name in ("RECORDS", "CALLS", "METHODS")}
    for name, target in targets.items():
        monkeypatch.setitem(made["update"].__globals__, name, target)
    made["update"]()
    texts = [target.read_text() for target in targets.values()]
    assert texts == [made_of.read_text() for made_of in originals()]
    targets["CALLS"].write_text("older")
    made["update"]()
    assert targets["CALLS"].read_text() == "older"
    os.utime(targets["CALLS"], (0, 0))
    made["update"]()
    assert [target.read_text() for target in targets.values()] == texts


def originals() -> list[Path]:
    paths = SimpleNamespace(**runpy.run_path(str(GENERATE)))
    return [paths.RECORDS, paths.CALLS, paths.METHODS]
