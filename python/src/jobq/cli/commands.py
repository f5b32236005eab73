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

from jobq import __version__
from jobq.cli.cluster import cluster
from jobq.cli.completion import completion
from jobq.cli.conformance import conformance
from jobq.cli.console import console
from jobq.cli.deploy import deploy, print_sql
from jobq.cli.doctor import doctor
from jobq.cli.endpoints import endpoints
from jobq.cli.events import events
from jobq.cli.grants import grants
from jobq.cli.http import http
from jobq.cli.jobs import enqueue, explain, jobs, redrive, show
from jobq.cli.kinds import declare, delete_kind, kinds, settings
from jobq.cli.limits import limits
from jobq.cli.new import new
from jobq.cli.queues import pause, queues, resume, workers
from jobq.cli.run import run
from jobq.cli.schedules import preview, schedules
from jobq.cli.steering import cancel, change, delete
from jobq.cli.terminal import needing, say
from jobq.cli.work import work
from jobq.cli.worker import worker
from jobq.cli.workflows import cancel_tree, emit, graph, signal

__all__ = ["main"]

COMMANDS = (
    cancel,
    cancel_tree,
    change,
    cluster,
    completion,
    conformance,
    console,
    declare,
    delete,
    delete_kind,
    deploy,
    print_sql,
    doctor,
    emit,
    endpoints,
    enqueue,
    events,
    explain,
    graph,
    grants,
    http,
    jobs,
    kinds,
    limits,
    new,
    pause,
    preview,
    queues,
    redrive,
    resume,
    run,
    schedules,
    settings,
    show,
    signal,
    work,
    worker,
    workers,
)

# The commands of extras: where they are, and the extra that they need.
EXTRAS = {
    "keys": ("jobq.cli.keys", "http"),
    "secrets": ("jobq.cli.secrets", "delivery"),
    "top": ("jobq.cli.top", "top"),
}

# What a file or a disk says that takes no more.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Commands(click.Group):
    """All commands; those of extras are imported when they are asked for, to save memory."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as click has it
        """Run a command; that nothing can be written is told in one line.

        A closed pipe ends it without a word.
        """
        try:
            return super().main(*args, **options)
        except OSError as error:
            if error.errno not in FULL:
                raise
            # Or Python would try to write the rest at its end.
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - stays open
            with suppress(OSError):
                say(f"Error: cannot write: {os.strerror(error.errno)}", err=True)
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every name; those whose extra is not installed are not shown."""
        return sorted([*super().list_commands(ctx), *EXTRAS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None where there is none."""
        if cmd_name not in EXTRAS:
            return super().get_command(ctx, cmd_name)
        module, extra = EXTRAS[cmd_name]
        try:
            found: click.Command = getattr(importlib.import_module(module), cmd_name)
        except ModuleNotFoundError as error:
            return absent(cmd_name, error, extra)
        return found


def absent(name: str, error: ModuleNotFoundError, extra: str) -> click.Command:
    """Return a command that says, however it is called, which extra it needs."""

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
    """Run and look after jobs in PostgreSQL."""
    open_standard_streams()


def open_standard_streams() -> None:
    """Put /dev/null in the place of standard streams that are closed, and write all of a text.

    A connection would get the number of one otherwise, and whoever writes there writes to it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode)  # noqa: SIM115 - stays open
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # By PYTHONUNBUFFERED: Python would drop what is left of a text that is written in part.
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - stays open


for command in COMMANDS:
    main.add_command(command)
