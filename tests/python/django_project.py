"""A Django project: set up when it is imported; its database is each test's own."""

from __future__ import annotations

import django
from django.conf import settings
from django.urls import path

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}},
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "django_tasks",
        "jobq_contrib.django",
    ],
    TASKS={
        "default": {
            "BACKEND": "jobq_contrib.django.tasks.JobqBackend",
            "QUEUES": ["default", "queue-1"],
        },
        "retried": {
            "BACKEND": "jobq_contrib.django.tasks.JobqBackend",
            "OPTIONS": {"max_attempts": 2},
        },
    },
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    ROOT_URLCONF="django_project",
    SECRET_KEY="-",
    USE_TZ=True,
    ALLOWED_HOSTS=["*"],
)
django.setup()

from django.contrib import admin  # noqa: E402 - once the settings are there

urlpatterns = [path("admin/", admin.site.urls)]
