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
from click.shell_completion import get_completion_class

from jobq.version import __version__
from jobq_cli.terminal import needing, say


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL: eval "$(jobq completion bash)"."""
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has these three
    click.echo(found(context.find_root().command, {}, "jobq", "_JOBQ_COMPLETE").source())


# The modules with commands, and the names of these.
COMMANDS: Final = {
    "cluster": "cluster",
    "conformance": "conformance",
    "deploy": "deploy migration print_sql",
    "doctor": "certify doctor",
    "endpoints": "endpoints",
    "events": "events",
    "http": "console http",
    "jobs": "enqueue explain jobs redrive rerun show work",
    "limits": "budgets limits",
    "new": "new",
    "queues": "declare delete_kind grants kinds pause queues resume settings workers",
    "run": "run",
    "schedules": "preview schedules",
    "steering": "cancel change delete",
    "worker": "worker",
    "workflows": "answer cancel_tree emit fork graph publish send signal stream streams"
    " subscriptions waits",
}
# Commands that need an extra: their module and the extra.
EXTRAS: Final = {
    "keys": ("jobq_cli.keys", "http"),
    "mcp": ("jobq_cli.mcp", "mcp"),
    "secrets": ("jobq_cli.secrets", "delivery"),
    "top": ("jobq_cli.top", "top"),
}

# Errors of a full disk or file, and of a directory that cannot be written.
UNWRITABLE: Final = frozenset({
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO,
    errno.EACCES, errno.EEXIST, errno.ENOTDIR, errno.EROFS,
})  # fmt: skip


class Commands(click.Group):
    """All commands. Commands of extras are imported on demand, to save memory."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as click has it
        """Run a command. A file that cannot be written is reported in one line.

        A closed pipe ends the command silently.
        """
        try:
            return super().main(*args, **options)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            # Otherwise Python would try to write the rest at exit.
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - stays open
            with suppress(OSError):
                where = f"cannot write {error.filename}" if error.filename else "cannot write"
                say(f"Error: {where}: {os.strerror(error.errno)}", err=True)
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


main.add_command(completion)
for module, names in COMMANDS.items():
    for name in names.split():
        main.add_command(getattr(importlib.import_module(f"jobq_cli.{module}"), name))
