"""A Django project in one file, with the database of DATABASE_URL."""

from __future__ import annotations

import os
import sys

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from psycopg.conninfo import conninfo_to_dict

PARTS = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
URL = conninfo_to_dict(os.environ["DATABASE_URL"])
APPS = ["jobq_contrib.django", "shop"]

settings.configure(
    DATABASES={
        "default": {"ENGINE": "django.db.backends.postgresql"}
        | {name: URL[part] for name, part in PARTS.items()}
    },
    INSTALLED_APPS=APPS if django.VERSION >= (6,) else ["django_tasks", *APPS],
    TASKS={"default": {"BACKEND": "jobq_contrib.django.tasks.JobqBackend"}},
    USE_TZ=True,
)

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
