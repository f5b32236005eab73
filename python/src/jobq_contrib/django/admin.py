"""Jobs and schedules in the admin: read, cancel, redrive and run again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db import transaction
from django.utils.functional import cached_property

from jobq.errors import JobqError
from jobq_contrib.django import client
from jobq_contrib.django.models import Job, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest

# The maximum count of a page: to count millions of jobs, all would be read.
COUNTED = 10_000


class CappedPaginator(Paginator):
    """Counts up to a maximum."""

    @cached_property
    def count(self) -> int:
        """The number of rows, at most ``COUNTED``."""
        return len(self.object_list.values_list("pk").order_by()[:COUNTED])


class ReadOnly(admin.ModelAdmin):
    """A read-only admin, whose actions need the permission to change."""

    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, *_: object) -> bool:
        """Return False: jobs are enqueued."""
        return False

    def has_change_permission(self, *_: object) -> bool:
        """Return False: jobs change by functions."""
        return False

    def has_delete_permission(self, *_: object) -> bool:
        """Return False: jobs are cancelled."""
        return False

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change rows, though by actions only."""
        allowed: bool = request.user.has_perm(f"jobq.change_{self.opts.model_name}")
        return allowed

    def act(self, request: HttpRequest, rows: QuerySet, act: Callable[[Any, Any], object]) -> None:
        """Apply a function of the client to each row, and report the outcomes that it returns."""
        own, outcomes = client(rows.db), Counter[str]()
        for row in rows:
            try:
                with transaction.atomic(rows.db):
                    outcomes[str(act(own, row))] += 1
            except JobqError as error:
                self.message_user(request, f"{row}: {error}", messages.ERROR)
        if outcomes:
            words = ", ".join(f"{count} {name}" for name, count in outcomes.items())
            self.message_user(request, words.replace("_", " "))


@admin.register(Job)
class JobAdmin(ReadOnly):
    """Jobs, newest first."""

    list_display = ("job_id", "kind", "queue", "state", "attempt", "last_error_code", "created_at")
    list_filter: ClassVar = ["state"]
    search_fields: ClassVar = ["=job_id", "=kind"]
    actions: ClassVar = ["cancel", "redrive", "rerun"]

    @admin.action(description="Cancel selected jobs", permissions=["act"])
    def cancel(self, request: HttpRequest, jobs: QuerySet) -> None:
        """Cancel waiting jobs, and ask the workers of running ones."""
        reason = f"by {request.user} in the admin"
        self.act(request, jobs, lambda own, job: own.cancel(job.pk, reason))

    @admin.action(description="Redrive selected dead or cancelled jobs", permissions=["act"])
    def redrive(self, request: HttpRequest, jobs: QuerySet) -> None:
        """Run dead and cancelled jobs again, with all their attempts."""
        self.act(request, jobs, lambda own, job: own.redrive(job.pk))

    @admin.action(description="Run copies of selected finished jobs", permissions=["act"])
    def rerun(self, request: HttpRequest, jobs: QuerySet) -> None:
        """Enqueue copies of finished jobs."""
        self.act(request, jobs, lambda own, job: own.rerun(job.pk) and "enqueued")


@admin.register(Schedule)
class ScheduleAdmin(ReadOnly):
    """Schedules by name."""

    list_display = ("name", "kind", "status", "cron", "every", "time_zone", "next_run_at")
    list_filter: ClassVar = ["status"]
    actions: ClassVar = ["pause", "resume", "run"]

    @admin.action(description="Pause selected schedules", permissions=["act"])
    def pause(self, request: HttpRequest, schedules: QuerySet) -> None:
        """Let no slots fire."""
        self.act(request, schedules, lambda own, s: own.pause_schedule(s.pk) or "paused")

    @admin.action(description="Resume selected schedules", permissions=["act"])
    def resume(self, request: HttpRequest, schedules: QuerySet) -> None:
        """Let slots fire again."""
        self.act(request, schedules, lambda own, s: own.resume_schedule(s.pk) or "resumed")

    @admin.action(description="Run selected schedules now", permissions=["act"])
    def run(self, request: HttpRequest, schedules: QuerySet) -> None:
        """Enqueue a job of each."""
        self.act(request, schedules, lambda own, s: own.run_schedule(s.pk) and "enqueued")
