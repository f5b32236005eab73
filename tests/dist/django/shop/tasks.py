"""The tasks of the shop."""

from __future__ import annotations

try:
    from django.tasks import task
except ModuleNotFoundError:
    from django_tasks import task


@task()
def welcome(name: str) -> str:
    """Return a greeting."""
    return f"Welcome, {name}!"
