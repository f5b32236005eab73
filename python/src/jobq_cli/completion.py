"""`jobq completion`: shell completion of commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL: eval "$(jobq completion bash)"."""
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has these three
    click.echo(found(context.find_root().command, {}, "jobq", "_JOBQ_COMPLETE").source())
