"""jobq in a Django project: its transactions, its admin and its command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import django_project  # noqa: F401 - what follows needs its settings
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import close_old_connections, connections, transaction
from django.test import Client as Browser
from psycopg.conninfo import conninfo_to_dict

from jobq.errors import DatabaseUnavailable
from jobq_contrib.django import client
from jobq_contrib.django.management.commands.jobq_worker import url_of
from jobq_contrib.django.models import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

HANDLERS = """
from jobq import Registry
registry = Registry()
registry.handler("greet")(lambda payload: payload)
"""
NAMES = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


@pytest.fixture(autouse=True)
def django_database(database: str) -> Iterator[None]:
    """The project on the test's database."""
    parts = conninfo_to_dict(database)
    connections["default"].settings_dict.update({name: parts[NAMES[name]] for name in NAMES})
    yield
    connections["default"].close()


def test_djangos_transaction_decides() -> None:
    def give_up() -> None:
        with transaction.atomic():
            client().enqueue("lost")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        give_up()
    with transaction.atomic():
        job = client().enqueue("kept", {"a": [1]}, metadata={"b": 2})
        assert client().get(job.job_id).payload == {"a": [1]}
    [found] = Job.objects.all()
    assert (found.pk, found.kind, found.payload) == (job.job_id, "kept", {"a": [1]})


@pytest.mark.parametrize("has_checks", [True, False])
def test_a_persistent_connection_that_the_server_has_closed_is_replaced(
    has_checks: bool, connect: Callable[[], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = connections["default"]
    monkeypatch.setitem(home.settings_dict, "CONN_MAX_AGE", None)
    monkeypatch.setitem(home.settings_dict, "CONN_HEALTH_CHECKS", has_checks)
    client().enqueue("before")
    with connect() as connection:
        connection.execute(
            "select pg_terminate_backend(%s, 10000)", [home.connection.info.backend_pid]
        )
    close_old_connections()  # as at the beginning of each request
    if not has_checks:
        with pytest.raises(DatabaseUnavailable):
            client().enqueue("lost")
        close_old_connections()
    client().enqueue("after")
    assert [job.kind for job in Job.objects.order_by("job_id")] == ["before", "after"]


def test_the_admin_shows_jobs_and_changes_nothing() -> None:
    call_command("migrate", verbosity=0)
    client().enqueue("greet", {"name": "<script>"})
    browser = Browser()
    browser.force_login(User.objects.create_superuser("ada"))
    assert b"greet" in browser.get("/admin/jobq/job/?state__exact=queued").content
    [job] = Job.objects.all()
    page = browser.get(f"/admin/jobq/job/{job.pk}/change/").content.decode()
    assert "&lt;script&gt;" in page
    assert 'name="_save"' not in page
    assert browser.post(f"/admin/jobq/job/{job.pk}/delete/").status_code == 403
    assert browser.get("/admin/jobq/schedule/").status_code == 200


def test_the_command_runs_a_worker(
    connect: Callable[[], Connection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "django_handlers.py").write_text(HANDLERS)
    monkeypatch.chdir(tmp_path)
    client().enqueue("greet", {"name": "Ada"})
    with pytest.raises(SystemExit) as ended:
        call_command(
            "jobq_worker", "django_handlers:registry", "--", "--no-metrics", "--max-jobs", "1"
        )
    assert ended.value.code == 75
    with connect() as connection:
        assert connection.execute("select state from jobq.job").fetchall() == [("succeeded",)]


def test_a_worker_has_all_libpq_options_of_the_database() -> None:
    options = {"sslrootcert": "ca.pem", "options": "-c search_path=shop", "isolation_level": 3}
    connections["default"].settings_dict["OPTIONS"] = options
    try:
        parts = conninfo_to_dict(url_of("default"))
    finally:
        connections["default"].settings_dict["OPTIONS"] = {}
    assert (parts["sslrootcert"], parts["options"]) == ("ca.pem", "-c search_path=shop")
    assert "isolation_level" not in parts


def test_the_admin_acts_on_jobs_and_schedules() -> None:
    call_command("migrate", verbosity=0)
    job = client().enqueue("greet")
    schedule = client().create_schedule("daily", "greet", "0 9 * * *")
    browser = Browser()
    ada = User.objects.create_superuser("ada")
    browser.force_login(ada)

    def act(model: str, action: str, *keys: object) -> str:
        given = {"action": action, "_selected_action": list(map(str, keys))}
        page = browser.post(f"/admin/jobq/{model}/", given, follow=True)
        return str(page.content.decode())

    assert "1 cancelled" in act("job", "cancel", job.job_id)
    assert client().get(job.job_id).cancel_reason == "by ada in the admin"
    assert "1 enqueued" in act("job", "rerun", job.job_id)
    assert "1 queued" in act("job", "redrive", job.job_id)
    page = act("job", "rerun", job.job_id)
    [said] = re.findall(r'<li class="error">(.*?)</li>', page)
    assert said.startswith(f"Greet {job.job_id}: the job")
    assert "1 paused" in act("schedule", "pause", schedule)
    assert client().get_schedule("daily").status == "paused"
    assert "1 resumed" in act("schedule", "resume", schedule)
    assert "1 enqueued" in act("schedule", "run", schedule)

    reader = User.objects.create_user("eve", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_job"))
    browser.force_login(reader)
    assert "greet" in browser.get("/admin/jobq/job/").content.decode()
    act("job", "cancel", job.job_id)
    assert client().get(job.job_id).state == "queued"
