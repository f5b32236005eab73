"""Jobs and schedules in the admin, read-only."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.core.paginator import Paginator
from django.utils.functional import cached_property

from jobq_contrib.django.models import Job, Schedule

# The maximum count of a page: to count millions of jobs, all would be read.
COUNTED = 10_000


class CappedPaginator(Paginator):
    """Counts up to a maximum."""

    @cached_property
    def count(self) -> int:
        """The number of rows, at most ``COUNTED``."""
        return len(self.object_list.values_list("pk").order_by()[:COUNTED])


class ReadOnly(admin.ModelAdmin):
    """A read-only admin."""

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


@admin.register(Job)
class JobAdmin(ReadOnly):
    """Jobs, newest first."""

    list_display = ("job_id", "kind", "queue", "state", "attempt", "last_error_code", "created_at")
    list_filter: ClassVar = ["state"]
    search_fields: ClassVar = ["=job_id", "=kind"]


@admin.register(Schedule)
class ScheduleAdmin(ReadOnly):
    """Schedules by name."""

    list_display = ("name", "kind", "status", "cron", "every", "time_zone", "next_run_at")
    list_filter: ClassVar = ["status"]
