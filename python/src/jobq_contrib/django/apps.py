"""The application."""

from __future__ import annotations

from django.apps import AppConfig

__all__ = ["JobqConfig"]


class JobqConfig(AppConfig):
    """jobq, as Django knows it; it has no tables of its own and so no migrations."""

    name = "jobq_contrib.django"
    label = "jobq"
    verbose_name = "Jobs"
    default_auto_field = "django.db.models.BigAutoField"
