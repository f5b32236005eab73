"""All commands of `jobq`, as one group."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from jobq.version import __version__
from jobq_cli.certify import certify
from jobq_cli.cluster import cluster
from jobq_cli.completion import completion
from jobq_cli.conformance import conformance
from jobq_cli.console import console
from jobq_cli.deploy import deploy, print_sql
from jobq_cli.doctor import doctor
from jobq_cli.endpoints import endpoints
from jobq_cli.events import events
from jobq_cli.http import http
from jobq_cli.jobs import enqueue, explain, jobs, redrive, rerun, show, work
from jobq_cli.limits import budgets, limits
from jobq_cli.migration import migration
from jobq_cli.new import new
from jobq_cli.queues import (
    declare,
    delete_kind,
    grants,
    kinds,
    pause,
    queues,
    resume,
    settings,
    workers,
)
from jobq_cli.run import run
from jobq_cli.schedules import preview, schedules
from jobq_cli.steering import cancel, change, delete
from jobq_cli.terminal import needing, say
from jobq_cli.worker import worker
from jobq_cli.workflows import (
    answer,
    cancel_tree,
    emit,
    fork,
    graph,
    publish,
    send,
    signal,
    stream,
    streams,
    subscriptions,
    waits,
)

COMMANDS = (
    answer, budgets, cancel, cancel_tree, certify, change, cluster, completion, conformance,
    console, declare, delete, delete_kind, deploy, print_sql, doctor, emit, endpoints, enqueue,
    events, explain, fork, graph, grants, http, jobs, kinds, limits, migration, new, pause,
    preview, publish, queues, redrive, rerun, resume, run, schedules, send, settings, show,
    signal, stream, streams, subscriptions, waits, work, worker, workers,
)  # fmt: skip

# Commands that need an extra: their module and the extra.
EXTRAS = {
    "keys": ("jobq_cli.keys", "http"),
    "mcp": ("jobq_cli.mcp", "mcp"),
    "secrets": ("jobq_cli.secrets", "delivery"),
    "top": ("jobq_cli.top", "top"),
}

# Errors of a full disk or file.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Commands(click.Group):
    """All commands. Commands of extras are imported on demand, to save memory."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as click has it
        """Run a command. A full disk is reported in one line.

        A closed pipe ends the command silently.
        """
        try:
            return super().main(*args, **options)
        except OSError as error:
            if error.errno not in FULL:
                raise
            # Otherwise Python would try to write the rest at exit.
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - stays open
            with suppress(OSError):
                say(f"Error: cannot write: {os.strerror(error.errno)}", err=True)
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every name. Commands whose extra is missing are hidden."""
        return sorted([*super().list_commands(ctx), *EXTRAS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None if it does not exist."""
        if cmd_name not in EXTRAS:
            return super().get_command(ctx, cmd_name)
        module, extra = EXTRAS[cmd_name]
        try:
            found: click.Command = getattr(importlib.import_module(module), cmd_name)
        except ModuleNotFoundError as error:
            return absent(cmd_name, error, extra)
        return found


def absent(name: str, error: ModuleNotFoundError, extra: str) -> click.Command:
    """Return a command that reports the missing extra, whatever its arguments."""

    def refuse(*_: object, **__: object) -> None:
        with needing(extra):
            raise error

    return click.Command(
        name,
        callback=refuse,
        hidden=True,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="jobq")
def main() -> None:
    """Run and manage jobs in PostgreSQL."""
    open_standard_streams()


def open_standard_streams() -> None:
    """Replace closed standard streams by /dev/null, and write complete texts.

    Otherwise a connection could get the descriptor of a stream, and prints would go to it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode)  # noqa: SIM115 - stays open
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # With PYTHONUNBUFFERED, Python drops the rest of a partially written text.
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - stays open


for command in COMMANDS:
    main.add_command(command)
