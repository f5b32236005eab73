"""The rules of docs/alerts.yml, evaluated by Prometheus' own promtool."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from test_doctor import FAULTS, WARNINGS, alert_of

from servers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

RULES = ROOT / "docs" / "alerts.yml"
SERIES = 'jobq_check_failed{{check="{check}",severity="{severity}"}}'
LABELS = '{{alertname="{alert}", check="{check}"}}'


def fires(folder: Path, series: dict[str, str], at: str, *alerts: str) -> dict[str, bool]:
    """Tell which alerts fire at a time, for series with a value each minute."""
    found = {}
    for alert in alerts:
        test = {
            "rule_files": [str(RULES)],
            "evaluation_interval": "1m",
            "tests": [{
                "interval": "1m",
                "input_series": [{"series": s, "values": v} for s, v in series.items()],
                "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": []}],
            }],
        }  # fmt: skip
        file = folder / "rules_test.json"
        file.write_text(json.dumps(test))
        done = subprocess.run(
            ["promtool", "test", "rules", file], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or "got:[" in done.stderr.replace("\n", "").replace(" ", "")
        found[alert] = done.returncode != 0
    return found


def test_the_rules_are_sound() -> None:
    subprocess.run(["promtool", "check", "rules", RULES], check=True, capture_output=True)


def test_each_check_that_fails_has_one_alert(tmp_path: Path) -> None:
    checks = sorted({fault.subject for fault in FAULTS.values()} - {"release"})
    expected: list[dict[str, Any]] = []
    for check in checks:
        severity = "warning" if check in WARNINGS else "failure"
        expected.append({"check": check, "severity": severity, "alert": alert_of(check)})
    query = 'count by (alertname, check) (ALERTS{{alertstate="firing", check="{check}"}})'
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": [
                {
                    "series": SERIES.format(**each),
                    "values": "0x4 1x30 0x10",
                }
                for each in expected
            ],
            "promql_expr_test": [
                {
                    "expr": query.format(check=each["check"]),
                    "eval_time": at,
                    "exp_samples": [
                        {"labels": LABELS.format(**each), "value": 1}
                    ] if is_firing else [],
                }
                for each in expected
                for at, is_firing in (("4m", False), ("25m", True), ("40m", False))
            ],
        }],
    }  # fmt: skip
    file = tmp_path / "rules_test.json"
    file.write_text(json.dumps(test))
    done = subprocess.run(
        ["promtool", "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_guide_has_every_check_and_its_alert() -> None:
    assert len(FAULTS) >= 25
    guide = (ROOT / "docs" / "monitoring.md").read_text()
    named = set(re.findall(r"`(\w+)`", guide))
    subjects = {fault.subject for fault in FAULTS.values()}
    # The server does not ask for the release.
    alerts = {alert_of(subject) for subject in subjects - {"release"}}
    assert subjects | alerts <= named, (subjects | alerts) - named


def test_the_table_of_drills_is_true() -> None:
    text = (ROOT / "docs" / "contributing" / "drills.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    told = {cells[0]: cells[1:] for cells in rows}
    assert set(FAULTS) <= set(told), set(FAULTS) - set(told)
    for name, fault in FAULTS.items():
        check, severity, alert, _, remedy, _ = told[name]
        assert check == f"`{fault.subject}`"
        assert severity == ("warning" if fault.subject in WARNINGS else "failure")
        assert alert == ("" if fault.subject == "release" else f"`{alert_of(fault.subject)}`")
        assert fault.remedy in remedy


@pytest.mark.parametrize(
    ("name", "series", "at", "is_firing"),
    [
        ("one attempt lost its lease", {"jobq_lost_attempts": "0x3 1x10 0x10"}, "5m", True),
        ("it was ten minutes ago", {"jobq_lost_attempts": "0x3 1x10 0x10"}, "16m", False),
    ],
)
def test_a_lost_lease_is_told(
    tmp_path: Path, name: str, series: dict[str, str], at: str, is_firing: bool
) -> None:
    assert fires(tmp_path, series, at, "JobqLeasesExpire")["JobqLeasesExpire"] is is_firing, name


def counters(failed: str, succeeded: str) -> dict[str, str]:
    labels = '{instance="a",queue="mail"}'
    return {
        'jobq_up{instance="a"}': "1x60",
        f"jobq_attempts_failed_total{labels}": failed,
        f"jobq_jobs_dead_total{labels}": failed.replace("90", "0"),
        f"jobq_jobs_succeeded_total{labels}": succeeded,
    }


@pytest.mark.parametrize(
    ("name", "series", "at", "is_firing"),
    [
        ("a burst", counters("0x20 90x30", "100x50"), "22m", True),
        ("the first burst, of a new queue", counters("_x20 90x30", "_x20 5x30"), "22m", True),
        ("after the burst", counters("0x20 90x30", "100x50"), "40m", False),
        ("a few of many", counters("0x20 90x30", "0x20 900x30"), "22m", False),
        ("the past, when Prometheus is new", counters("90x50", "5x50"), "5m", False),
    ],
)
def test_a_burst_of_failures_is_told(
    tmp_path: Path, name: str, series: dict[str, str], at: str, is_firing: bool
) -> None:
    assert fires(tmp_path, series, at, "JobqAttemptsFail")["JobqAttemptsFail"] is is_firing, name
