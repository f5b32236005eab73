"""/metrics of the HTTP server: who may see it, and names that callers choose."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from http_api import SETTINGS, opened

import jobq
from jobq_http import metrics
from servers import ROOT

if TYPE_CHECKING:
    from http_api import Api

pytest_plugins = ["http_fixtures"]


async def figures(api: Api) -> dict[str, float]:
    text = (await api.ask("GET", "/metrics")).text
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the database each time."""
    monkeypatch.setattr(metrics, "MEMORY", 0.0)


def test_the_guide_has_every_figure_of_the_database() -> None:
    guide = (ROOT / "docs/monitoring.md").read_text()
    told = {n.removesuffix("_total") for n in re.findall(r"`(?:jobq_)?(\w+)[`{]", guide)}
    assert set(metrics.FIGURES) - told == set()


async def test_figures_are_behind_a_key_by_option(database: str) -> None:
    async with opened(database, replace(SETTINGS, is_metrics_open=False)) as api:
        stranger = await api.ask("GET", "/metrics", headers={"authorization": ""})
        producer = await api.ask("GET", "/metrics", headers=api.key(["produce"]))
        reader = await api.ask("GET", "/metrics", headers=api.key(["read"]))
    assert [answer.status_code for answer in (stranger, producer, reader)] == [401, 403, 200]


async def test_figures_are_for_anybody_otherwise(api: Api) -> None:
    anybody = await api.ask("GET", "/metrics", headers={"authorization": ""})
    assert anybody.status_code == 200


async def test_two_who_ask_at_once_get_the_same_figures(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two servers of Prometheus that watch each other."""
    monkeypatch.setattr(metrics, "MEMORY", 60.0)
    first, second = await asyncio.gather(figures(api), figures(api))
    assert (first["jobq_up"], second["jobq_up"]) == (1, 1)
    assert first.keys() - second.keys() == set()


async def test_names_that_callers_choose_do_not_make_it_large(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_QUEUES", 2)
    await api.job(queue="a")
    await api.job(queue="b")
    await figures(api)
    for number in range(20):
        await api.job(queue=f"q{number}")
    told = await figures(api)
    backlog = {name: told[name] for name in told if name.startswith("jobq_queue_backlog")}
    assert backlog == {
        'jobq_queue_backlog{queue="a"}': 1,
        'jobq_queue_backlog{queue="b"}': 1,
        'jobq_queue_backlog{queue="(other)"}': 20,
    }
    oldest = told['jobq_oldest_runnable_seconds{queue="(other)"}']
    assert 0 < oldest < told['jobq_oldest_runnable_seconds{queue="a"}'] + 1
    assert told["jobq_queues_without_label"] == 20


async def test_no_series_vanishes_and_the_build_is_told(api: Api) -> None:
    job = await api.job(queue="brief")
    before = await figures(api)
    assert before['jobq_queue_backlog{queue="brief"}'] == 1
    assert before['jobq_dlq_size{queue="brief"}'] == 0
    assert before['jobq_jobs_enqueued_total{queue="brief"}'] == 0
    api.run("insert into jobq_private.total values ('brief', 5, 3, 1, 1, 0)")
    assert (await api.ask("POST", f"/jobs/{job['job_id']}/cancel")).is_success
    after = await figures(api)
    assert after['jobq_queue_backlog{queue="brief"}'] == 0
    assert after['jobq_jobs_enqueued_total{queue="brief"}'] == 5
    assert after['jobq_attempts_failed_total{queue="brief"}'] == 1
    assert before.keys() - after.keys() == set()
    assert "jobq_fail_rate" in after
    assert after[f'jobq_build_info{{version="{jobq.__version__}"}}'] == 1
