"""Restores of jobq's schemas alone and of data alone; what a backup does not contain."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import psycopg
import pytest

from jobq import Client
from jobq_delivery.keyring import Keyring
from jobq_operations import deploy

if TYPE_CHECKING:
    from pathlib import Path

    from servers import Cluster

SCHEMAS = ("jobq", "jobq_http", "jobq_internal", "jobq_private")

EMPTIED = """
select format('truncate %s', string_agg(c.oid::regclass::text, ', '))
from pg_class as c
where c.relnamespace = 'jobq_private'::regnamespace
and c.relkind in ('r', 'p') and not c.relispartition
"""


@pytest.mark.oldest_version
def test_settings_restored_without_triggers_hold_at_once(cluster: Cluster, tmp_path: Path) -> None:
    dump = tmp_path / "data.dump"
    programs = cluster.server.programs
    with cluster.database() as old, cluster.database() as new:
        with psycopg.connect(old, autocommit=True) as connection:
            connection.execute("select jobq.configure(max_attempts => 17)")
            connection.execute("select jobq.put_kind('ruled', priority => 5)")
            connection.execute("select jobq.put_queue('default', timeout => '17 s')")
            connection.execute("select jobq.enqueue('ruled')")
        subprocess.run(
            [programs / "pg_dump", "--data-only", "--format", "custom", "--file", dump, old],
            check=True, capture_output=True,
        )  # fmt: skip
        with psycopg.connect(new, autocommit=True) as connection:
            connection.execute("set session_replication_role = replica")
            truncate = connection.execute(EMPTIED).fetchone()
            assert truncate is not None
            connection.execute(truncate[0])
        subprocess.run(
            [programs / "pg_restore", "--data-only", "--disable-triggers", "--exit-on-error",
             "--dbname", new, dump],
            check=True, capture_output=True,
        )  # fmt: skip
        with psycopg.connect(new, autocommit=True) as connection:
            job_id = connection.execute("select jobq.enqueue('ruled')").fetchone()
            ruled = connection.execute(
                "select priority, max_attempts, timeout::text from jobq.job where job_id = %s",
                job_id,
            ).fetchone()
            assert ruled == (5, 17, "00:00:17")


@pytest.mark.oldest_version
def test_a_dump_of_the_schemas_alone_is_a_whole_jobq(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL may print restored definitions in other words, which deploy takes note of."""
    monkeypatch.setattr(deploy, "project_dir", lambda: cluster.project)
    dump = tmp_path / "jobq.dump"
    programs = cluster.server.programs
    with cluster.database() as old, cluster.database("template0") as new:
        with psycopg.connect(old, autocommit=True) as connection:
            connection.execute("create table public.orders as select 1 as order_id")
            connection.execute("select jobq.create_schedule('daily', 'k', every => '1 day')")
            connection.execute("select jobq.enqueue('k')")
            connection.execute("select jobq.enqueue('ran')")
            connection.execute(
                "select jobq.complete(job_id, attempt) from jobq.claim('{default}', 'w')"
            )
        schemas = [word for schema in SCHEMAS for word in ("--schema", schema)]
        subprocess.run(
            [programs / "pg_dump", *schemas, "--format", "custom", "--file", dump, old],
            check=True, capture_output=True,
        )  # fmt: skip
        subprocess.run(
            [programs / "pg_restore", "--exit-on-error", "--dbname", new, dump],
            check=True, capture_output=True,
        )  # fmt: skip
        assert "is up to date" in deploy._mend(new, print, None)
        with psycopg.connect(new, autocommit=True) as connection:
            count = "select count(*) from jobq.job"
            assert connection.execute(count).fetchone() == (2,)
            assert connection.execute("select to_regclass('public.orders')").fetchone() == (None,)
            bad = connection.execute(
                "select subject, finding from jobq.health(part => 'schema') where not is_ok"
            )
            assert bad.fetchall() == []
            done = connection.execute(
                "select jobq.complete(job_id, attempt) from jobq.claim('{default}', 'w')"
            )
            assert done.fetchall() == [(True,)]
            connection.execute("select jobq.enqueue('k'); select jobq.maintain()")


def test_a_backup_contains_no_secret_in_plain_text(cluster: Cluster) -> None:
    with cluster.database() as url, Client(url) as client:
        client.put_secret("canary", "canary-7f3a9c", keyring=Keyring([bytes(range(32))]))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "select jobq_http.create_api_key('k', sha256('token-5d1e'), 'tok', '{read}')"
            )
        dump = subprocess.run(
            [cluster.server.programs / "pg_dump", url], check=True, capture_output=True
        ).stdout
    assert b"canary" in dump  # its name
    for plain in (b"canary-7f3a9c", b"canary-7f3a9c".hex().encode(), b"token-5d1e"):
        assert plain not in dump
    assert bytes(range(32)).hex().encode() not in dump
