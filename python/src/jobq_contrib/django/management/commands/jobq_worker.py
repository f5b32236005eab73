"""manage.py jobq_worker app.jobs:registry -- --queue default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand
from django.db import connections
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from jobq_cli import main

if TYPE_CHECKING:
    from argparse import ArgumentParser


# The tasks of Django; see jobq_contrib.django.tasks.
TASKS = "jobq_contrib.django.tasks:registry"


class Command(BaseCommand):
    """`jobq worker` with the database of the project's settings."""

    help = "Run jobs with the handlers in TARGET, such as app.jobs:registry; else Django's tasks."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a target, a database, and the options of `jobq worker`."""
        parser.add_argument("target", nargs="?", default=TASKS)
        parser.add_argument("--using", default="default", help="the alias of the database")
        parser.add_argument("options", nargs="*", help="after --: the options of `jobq worker`")

    def handle(self, *_: object, target: str, using: str, options: list[str], **__: object) -> None:
        """Run the worker in this process, which so gets its signals and exit status."""
        if target.startswith("-"):  # an option, which stands behind -- as the target would
            target, options = TASKS, [target, *options]
        words = ["worker", target, "--database", url_of(using), *options]
        main.main(args=words, prog_name="manage.py jobq_worker", standalone_mode=True)


def url_of(using: str) -> str:
    """Return the libpq URL of a database of Django."""
    parameters = connections[using].get_connection_params()
    names = (option.keyword.decode() for option in Conninfo.get_defaults())
    given = {name: parameters.get(name) for name in names}
    return make_conninfo(**{n: value for n, value in given.items() if value not in (None, "")})
