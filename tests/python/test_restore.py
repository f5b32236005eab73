"""What is loaded past the triggers is gone by: as the manual's chapter on backups says."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from servers import Cluster

EMPTIED = """
select format('truncate %s', string_agg(c.oid::regclass::text, ', '))
from pg_class as c
where c.relnamespace = 'jobq_private'::regnamespace
and c.relkind in ('r', 'p') and not c.relispartition
"""
RENEWED = "select affected from jobq.maintain() where task = 'renewed_settings'"


@pytest.mark.every_version
def test_data_restored_without_triggers_rule_again(cluster: Cluster, tmp_path: Path) -> None:
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
            assert connection.execute(RENEWED).fetchone() == (3,)
            job_id = connection.execute("select jobq.enqueue('ruled')").fetchone()
            ruled = connection.execute(
                "select priority, max_attempts, timeout::text from jobq.job where job_id = %s",
                job_id,
            ).fetchone()
            assert ruled == (5, 17, "00:00:17")
            assert connection.execute(RENEWED).fetchone() == (0,)
