"""Jobs and schedules as read-only models of the views jobq.job and jobq.schedule.

To change jobs, use `jobq_contrib.django.client`.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from jobq.models import STATES

__all__ = ["Job", "Schedule"]


class Job(models.Model):
    """A job, live or archived."""

    job_id = models.UUIDField(primary_key=True)
    kind = models.TextField()
    queue = models.TextField()
    state = models.TextField(choices=[(state, state) for state in STATES])
    priority = models.IntegerField()
    attempt = models.IntegerField()
    attempts = models.IntegerField()
    max_attempts = models.IntegerField()
    payload = models.JSONField()
    metadata = models.JSONField()
    result = models.JSONField(null=True)
    progress = models.JSONField(null=True)
    last_error = models.TextField(null=True)
    last_error_code = models.TextField(null=True)
    idempotency_key = models.TextField(null=True)
    concurrency_key = models.TextField(null=True)
    worker = models.TextField(null=True)
    created_at = models.DateTimeField()
    run_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField()

    class Meta:
        """A view, which has no migrations."""

        managed = False
        db_table = '"jobq"."job"'
        ordering: ClassVar = ["-job_id"]

    def __str__(self) -> str:
        return f"{self.kind} {self.job_id}"


class Schedule(models.Model):
    """A recurring job."""

    schedule_id = models.UUIDField(primary_key=True)
    name = models.TextField()
    kind = models.TextField()
    status = models.TextField()
    cron = models.TextField(null=True)
    every = models.DurationField(null=True)
    time_zone = models.TextField()
    next_run_at = models.DateTimeField(null=True)

    class Meta:
        """A view, which has no migrations."""

        managed = False
        db_table = '"jobq"."schedule"'
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
