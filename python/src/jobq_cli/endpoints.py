"""`jobq endpoints`: list, pause, preview and test endpoints."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import timedelta
from functools import partial
from typing import Any, Final

import click

from jobq.client import Client
from jobq.models import EndpointStats
from jobq_cli.declared import calling, limited, listing_group
from jobq_cli.parameters import OWN_DATABASE, PAYLOAD, Seconds, argument, limit, option, reason
from jobq_cli.terminal import needing

ENDPOINT: Final = argument("endpoint")
COLUMNS: Final = ("name", "type", "version", "queue", "paused_at", "pause_reason")
own: Final = partial(calling, of=OWN_DATABASE)


def listed(client: Client, *, max_definitions: int) -> list[dict[str, Any]]:
    """Return the endpoints without their specs."""
    found = limited("list_definitions", "max_definitions", "endpoints")(
        client, type="endpoint", max_definitions=max_definitions
    )
    return [{name: row[name] for name in COLUMNS} for row in found]


def previewed(client: Client, *, endpoint: str, payload: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what a delivery would send."""
    with needing("delivery"):
        from jobq_delivery.endpoint import get_delivery  # noqa: PLC0415 - an extra
        from jobq_delivery.preview import preview  # noqa: PLC0415 - an extra

        found = client.run(get_delivery(endpoint, None, None))
        return preview(endpoint, found, json.dumps(payload))


def tested(client: Client, *, endpoint: str, payload: Any, timeout: float) -> Any:  # noqa: ANN401
    """Deliver a test job and return the response."""
    job_id = client.test_endpoint(endpoint, payload)
    try:
        return client.result(job_id, timeout)
    except TimeoutError as error:
        raise click.ClickException(f"job {job_id} has not finished within {timeout:g} s") from error


# fmt: off
endpoints = listing_group(
    "List the endpoints, or manage one.",
    calling("endpoints", listed, "List.", limit(50, 200, "max_definitions"), rows=COLUMNS),
    own("stats", lambda client, **given: [client.endpoint_stats(**given)],
        "Show statistics of deliveries to ENDPOINT, of at most 1,000 recent attempts.", ENDPOINT,
        option("--hours", "period", default=1, type=click.IntRange(1, 720),
               callback=lambda _context, _parameter, hours: timedelta(hours=hours),
               help="Hours to look back."),
        rows=[field.name for field in fields(EndpointStats)]),
    own("pause", "pause_endpoint",
        "Pause deliveries to ENDPOINT. Running ones finish; other jobs wait.", ENDPOINT, reason()),
    own("resume", "resume_endpoint", "Resume deliveries to ENDPOINT.", ENDPOINT),
    own("preview", previewed,
        "Show what would be sent to ENDPOINT for PAYLOAD (JSON), with masked secrets.",
        ENDPOINT, PAYLOAD,
        lines=lambda shown: json.dumps(shown, indent=2, ensure_ascii=False).split("\n")),
    own("test", tested,
        "Deliver PAYLOAD (JSON) to ENDPOINT once, even if it is paused. Prints the response.\n\n"
        "A worker delivers it, so one must run.", ENDPOINT, PAYLOAD,
        option("--timeout", default=60.0, type=Seconds(0), help="Seconds to wait."),
        lines=lambda result: [json.dumps(result, ensure_ascii=False)]),
)
# fmt: on
