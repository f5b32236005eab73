"""Requests and answers, for the specification."""

from __future__ import annotations

from typing import Any, Final

ID: Final = "01a1fdac-222a-7efd-9232-ffd89900cb30"
MOMENT: Final = "2026-03-15T10:00:00.000000+00:00"
INPUT: Final = {"user_id": "u_abc", "order_id": "order-1234"}

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
