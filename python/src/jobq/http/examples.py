"""Requests and answers, for the specification."""

from __future__ import annotations

from typing import Any, Final

ID: Final = "01a1fdac-222a-7efd-9232-ffd89900cb30"
MOMENT: Final = "2026-03-15T10:00:00.000000+00:00"
INPUT: Final = {"user_id": "u_abc", "order_id": "order-1234"}

JOB: Final[dict[str, Any]] = {
    "job_id": ID,
    "endpoint": "send-welcome-email",
    "endpoint_type": "HTTP",
    "trigger": "IMMEDIATE",
    "status": "ACTIVE",
    "version": 1,
    "idempotency_key": "order-1234-welcome-email",
    "input": INPUT,
    "execution": {"execution_id": ID, "status": "QUEUED", "created_at": MOMENT},
    "created_at": MOMENT,
    "kind": "send-welcome-email",
    "queue": "default",
    "state": "queued",
    "metadata": {},
    "dedup_key": None,
    "concurrency_key": None,
    "expires_at": None,
    "priority": 0,
    "attempt": 0,
    "attempts": 0,
    "max_attempts": 5,
    "timeout_ms": 300000,
    "run_at": MOMENT,
    "worker": None,
    "started_at": None,
    "heartbeat_at": None,
    "lease_expires_at": None,
    "finished_at": None,
    "updated_at": MOMENT,
    "cancel_requested": False,
    "cancel_reason": None,
    "progress": None,
    "result": None,
    "last_error_code": None,
    "last_error": None,
    "schedule_id": None,
    "slot_at": None,
    "region": "default",
    "batch_id": None,
}
NEW_JOB: Final = {**JOB, "created": True}
SAME_JOB: Final = {**JOB, "created": False}
EVENTS: Final = {
    "items": [
        {
            "cursor": f"1773568800000000_{ID}",
            "job_id": ID,
            "kind": "send_email",
            "queue": "mail",
            "state": "dead",
            "attempts": 3,
            "error_code": "TIMEOUT",
            "metadata": {},
            "batch_id": None,
            "created_at": MOMENT,
            "finished_at": MOMENT,
        }
    ],
    "cursor": "1773568801000000_00000000-0000-0000-0000-000000000000",
    "is_behind": False,
    "is_settled": True,
}
JOBS: Final = {"items": [JOB], "cursor": None}

NEW_JOBS: Final[dict[str, Any]] = {
    "a job of a kind": {
        "kind": "send_email",
        "payload": {"to": "ada@example.org", "subject": "Hello", "body": "Hi"},
    },
    "with every option": {
        "kind": "send_email",
        "payload": {"to": "ada@example.org", "subject": "Hello", "body": "Hi"},
        "queue": "mail",
        "run_at": "2026-03-15T18:00:00Z",
        "priority": 10,
        "max_attempts": 3,
        "timeout_ms": 60000,
        "dedup_key": "ada@example.org",
        "dedup": "skip",
        "concurrency_key": "customer-42",
        "expires_at": "2126-03-15T09:00:00Z",
        "metadata": {"order": "1234"},
    },
    "an endpoint, now": {
        "endpoint": "send-welcome-email",
        "trigger": "IMMEDIATE",
        "idempotency_key": "order-1234-welcome-email",
        "input": INPUT,
    },
    "an endpoint, every Monday": {
        "endpoint": "push-notification",
        "trigger": "CRON",
        "cron": "0 9 * * MON",
        "timezone": "Asia/Kolkata",
        "starts_at": "2026-03-16T00:00:00Z",
        "ends_at": None,
        "input": {
            "user_id": "u_abc",
            "title": "Weekly Summary",
            "body": "Here's your weekly report",
        },
    },
    "jobs that run after each other, every night": {
        "kind": "open_day",
        "trigger": "CRON",
        "cron": "0 3 * * *",
        "timezone": "UTC",
        "graph": {
            "jobs": [
                {"name": "orders", "kind": "total_orders"},
                {"name": "balance", "kind": "balance", "after": ["orders"]},
            ]
        },
    },
    "an endpoint, later": {
        "endpoint": "send-welcome-email",
        "trigger": "DELAYED",
        "idempotency_key": "order-1234-reminder",
        "run_at": "2026-03-15T18:00:00Z",
        "input": INPUT,
    },
}
BATCH: Final = {
    "jobs": [
        {"kind": "resize_image", "payload": {"path": "a.png", "width": 200}},
        {"kind": "resize_image", "payload": {"path": "b.png", "width": 200}},
    ]
}
BATCH_ANSWER: Final = {
    "items": [
        {"job_id": ID, "created": True},
        {"job_id": "01a1fdac-222a-7efe-8c00-1f2e3d4c5b6a", "created": True},
    ]
}

EXECUTION: Final = {
    "execution_id": ID,
    "job_id": ID,
    "endpoint": "send-welcome-email",
    "endpoint_type": None,
    "idempotency_key": "order-1234-welcome-email",
    "status": "SUCCESS",
    "input": INPUT,
    "output": {"status_code": 200, "body": "OK"},
    "attempt_count": 1,
    "max_attempts": 5,
    "worker_id": "mail-1",
    "run_at": MOMENT,
    "started_at": MOMENT,
    "completed_at": "2026-03-15T10:00:00.340000+00:00",
    "duration_ms": 340,
    "created_at": MOMENT,
}
ATTEMPTS: Final = {
    "items": [
        {
            "attempt_id": f"{ID}:1",
            "execution_id": ID,
            "attempt_number": 1,
            "status": "FAILED",
            "worker_id": "mail-1",
            "created_at": MOMENT,
            "started_at": MOMENT,
            "completed_at": "2026-03-15T10:00:05.000000+00:00",
            "duration_ms": 5000,
            "output": None,
            "error": {"type": "HTTP_ERROR", "message": "status 503", "status_code": 503},
        }
    ],
    "cursor": None,
}
LOGS: Final = {
    "items": [
        {
            "log_id": "17",
            "execution_id": ID,
            "attempt_number": 1,
            "level": "INFO",
            "message": "connecting to mail.example.org",
            "logged_at": MOMENT,
        }
    ],
    "cursor": None,
}
EXPLANATION: Final = {
    "reasons": [
        {
            "reason": "no_worker",
            "explanation": "no worker of queue mail was seen in the last minute",
        }
    ]
}
CHANGE: Final = {"queue": "mail", "changes": {"run_now": True, "priority": 5}}
REDRIVE: Final = {"queue": "mail", "since": "2026-03-15T12:00:00Z"}
QUEUES: Final = {
    "items": [
        {
            "queue": "mail",
            "queued": 12,
            "scheduled": 3,
            "running": 4,
            "retrying": 1,
            "dead": 2,
            "oldest_runnable_ms": 800,
            "finished_last_minute": 3100,
            "is_paused": False,
            "lanes": 3,
            "closed_lanes": 1,
            "is_exact": True,
            "blocked": 0,
        }
    ],
    "cursor": None,
}
KINDS: Final = {
    "items": [
        {
            "kind": "send_email",
            "queue": "mail",
            "priority": None,
            "max_attempts": 3,
            "timeout_ms": 30000,
            "lease_ms": None,
            "retry_preset": None,
            "retry_strategy": None,
            "retry_initial_delay_ms": None,
            "retry_max_delay_ms": None,
            "retry_jitter": None,
            "dedup": None,
            "dedup_period_ms": None,
            "dedup_max_wait_ms": None,
            "reuse_key_after_failure": None,
            "concurrency_key": ["customer_id"],
            "max_running": None,
            "rate_limit": None,
            "rate_period_ms": None,
            "rate_burst": None,
            "key_max_running": 2,
            "key_rate_limit": None,
            "key_rate_period_ms": None,
            "key_rate_burst": None,
            "ordered": True,
            "on_dead": "hold",
            "keep_succeeded_ms": 3600000,
            "keep_dead_ms": None,
            "keep_cancelled_ms": None,
            "run": None,
            "retry_on": None,
            "is_endpoint": False,
            "payload_schema": {"type": "object", "required": ["to"]},
            "version": 12,
            "updated_at": MOMENT,
        }
    ]
}
WORKERS: Final = {
    "items": [
        {
            "worker": "app-1:4711:9c0f2a",
            "queues": ["default", "mail"],
            "started_at": MOMENT,
            "seen_at": MOMENT,
            "is_live": True,
            "jobs": 12,
            "kinds": {"send_email": 12},
            "oldest": {"job_id": ID, "kind": "send_email", "started_at": MOMENT},
            "region": "default",
            "except_kinds": [],
            "release": "shop-2026.11.3, jobq 0.1.0",
            "stuck": 0,
        }
    ]
}
CLAIM: Final = {"queues": ["mail"], "max_jobs": 10, "wait_ms": 20000}
CLAIMED: Final = {
    "jobs": [
        {
            "job_id": ID,
            "attempt": 1,
            "kind": "send-welcome-email",
            "payload": INPUT,
            "metadata": {},
            "queue": "mail",
            "max_attempts": 5,
            "timeout_ms": 300000,
            "lease_ms": 30000,
            "lease_expires_at": "2026-03-15T10:00:30.000000+00:00",
            "run_at": MOMENT,
            "created_at": MOMENT,
            "idempotency_key": "order-1234-welcome-email",
        }
    ]
}
BEAT: Final = {"queues": ["mail"], "jobs": [{"job_id": ID, "attempt": 1}]}
BEATS: Final = {"jobs": [{"job_id": ID, "attempt": 1, "outcome": "extended"}]}
FAILURE: Final = {
    "error": "421 try again later",
    "error_code": "SMTP_421",
    "retryable": True,
    "retry_in_ms": 60000,
    "details": {"enhanced_code": "4.3.2"},
}

REVISION: Final = {
    "cron": "0 10 * * MON",
    "timezone": "Asia/Kolkata",
    "input": {"report_type": "weekly", "include_charts": True},
}
RECURRING: Final[dict[str, Any]] = {
    "job_id": ID,
    "endpoint": "push-notification",
    "endpoint_type": "REDIS_STREAM",
    "trigger": "CRON",
    "status": "ACTIVE",
    "version": 2,
    "previous_version_id": "01a1fdab-1e00-7c11-8a52-94c5c2e1a3b7",
    "replaced_by_id": None,
    "name": "weekly-summary",
    "cron": "0 10 * * MON",
    "every_ms": None,
    "from_completion": False,
    "timezone": "Asia/Kolkata",
    "gap": "auto",
    "fold": "auto",
    "missed": "all",
    "catch_up_ms": None,
    "dedup": "enqueue",
    "dedup_key": None,
    "concurrency_key": None,
    "jitter_ms": 0,
    "starts_at": "2026-03-16T00:00:00+00:00",
    "ends_at": None,
    "next_run_at": "2026-03-16T10:00:00+05:30",
    "last_tick_at": None,
    "input": {"report_type": "weekly", "include_charts": True},
    "kind": "push-notification",
    "queue": None,
    "metadata": {},
    "graph": None,
    "priority": None,
    "max_attempts": None,
    "timeout_ms": None,
    "paused_at": None,
    "pause_reason": None,
    "region": "default",
    "created_at": MOMENT,
    "retired_at": None,
}
STATUS: Final = {
    "job_id": ID,
    "name": "weekly-summary",
    "endpoint": "push-notification",
    "endpoint_type": "REDIS_STREAM",
    "trigger": "CRON",
    "status": "ACTIVE",
    "health": "HEALTHY",
    "version": 1,
    "last_execution": {
        "execution_id": "01a1fdac-222b-7c00-8e1f-0a1b2c3d4e5f",
        "status": "SUCCESS",
        "started_at": "2026-03-15T10:30:00+00:00",
        "completed_at": "2026-03-15T10:30:01+00:00",
        "attempt_number": 1,
    },
    "active_executions": {"pending": 2, "running": 1, "total": 3},
    "cron": {
        "expression": "0 9 * * MON",
        "every_ms": None,
        "next_run_at": "2026-03-16T09:00:00+05:30",
        "last_tick_at": "2026-03-09T09:00:00+05:30",
    },
    "stats": {
        "last_24h": {
            "total": 142,
            "succeeded": 139,
            "failed": 3,
            "avg_duration_ms": 340,
            "p99_duration_ms": 1200,
        }
    },
}

PAYLOAD_SPEC: Final = {
    "name": "send-welcome-email-input",
    "schema": {
        "type": "object",
        "properties": {
            "user_id": {"type": "string", "description": "Target user ID"},
            "order_id": {"type": "string", "description": "Associated order ID"},
        },
        "required": ["user_id"],
    },
}
CONFIG: Final = {
    "name": "email-service",
    "values": {"api_base_url": "https://api.myapp.com", "sender": "noreply@myapp.com"},
}
SECRET: Final = {"name": "email_api_key", "value": "sk-live-abc123..."}
ENDPOINT: Final = {
    "name": "send-welcome-email",
    "type": "HTTP",
    "payload_spec": "send-welcome-email-input",
    "config": "email-service",
    "spec": {
        "url": "{{config.api_base_url}}/emails/welcome",
        "method": "POST",
        "headers": {
            "Authorization": "Bearer {{secret.email_api_key}}",
            "Content-Type": "application/json",
        },
        "body_template": {"user_id": "{{input.user_id}}", "sender": "{{config.sender}}"},
        "timeout_ms": 5000,
        "expected_status_codes": [200, 201, 202, 204],
    },
    "retry_policy": {
        "max_attempts": 3,
        "backoff": "exponential",
        "initial_delay_ms": 1000,
        "max_delay_ms": 30000,
        "jitter": 0.25,
    },
}
