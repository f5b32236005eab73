"""The application."""

from __future__ import annotations

from django.apps import AppConfig

__all__ = ["JobqConfig"]


class JobqConfig(AppConfig):
    """The app of jobq, without tables and migrations."""

    name = "jobq_contrib.django"
    label = "jobq"
    verbose_name = "Jobs"
    default_auto_field = "django.db.models.BigAutoField"
