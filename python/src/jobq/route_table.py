"""How each function answers in a cluster, as `make docs` reads it."""

from typing import Final

__all__ = ["ROUTES"]

ROUTES: Final = {
    "act_for": (
        "refused",
        "it holds for the session, and the sessions on the shards are others",
    ),
    "advance_clock": (
        "refused",
        "the clock is that of one database",
    ),
    "await_events": (
        "refused",
        "who waits listens on the shard",
    ),
    "backfill_schedule": (
        "schedule",
        "schedule",
    ),
    "backoff": (
        "any",
        "",
    ),
    "batch_status": (
        "id",
        "batch_id",
    ),
    "begin_wait": (
        "refused",
        "who waits listens on the shard",
    ),
    "cancel": (
        "id",
        "job_id",
    ),
    "cancel_batch": (
        "id",
        "batch_id",
    ),
    "cancel_many": (
        "some",
        "max_jobs",
    ),
    "cancel_tree": (
        "id",
        "job_id",
    ),
    "change_many": (
        "some",
        "max_jobs",
    ),
    "choose_shard": (
        "own",
        "",
    ),
    "claim": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "claim_calls": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "claim_job": (
        "id",
        "job_id",
    ),
    "complete": (
        "id",
        "job_id",
    ),
    "complete_many": (
        "split",
        "job_ids",
    ),
    "configure": (
        "every",
        "",
    ),
    "confirm_cancel": (
        "id",
        "job_id",
    ),
    "create_schedule": (
        "schedule",
        "name",
    ),
    "delete_definition": (
        "every",
        "",
    ),
    "delete_kind": (
        "every",
        "",
    ),
    "delete_limit": (
        "every",
        "",
    ),
    "delete_many": (
        "some",
        "max_jobs",
    ),
    "delete_queue": (
        "every",
        "",
    ),
    "due_in": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "emit": (
        "every",
        "",
    ),
    "end_wait": (
        "refused",
        "who waits listens on the shard",
    ),
    "endpoint_stats": (
        "refused",
        "percentiles of several databases do not add up",
    ),
    "enforce_queue_grants": (
        "every",
        "",
    ),
    "enqueue": (
        "key",
        "",
    ),
    "enqueue_graph": (
        "lot",
        "graph_of",
    ),
    "enqueue_many": (
        "jobs",
        "jobs",
    ),
    "exchange": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "explain": (
        "id",
        "job_id",
    ),
    "fail": (
        "id",
        "job_id",
    ),
    "fail_many": (
        "split",
        "failures",
    ),
    "find_job": (
        "all",
        "",
    ),
    "get_delivery": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "get_job": (
        "id",
        "job_id",
    ),
    "get_schedule": (
        "schedule",
        "schedule",
    ),
    "grant_queue": (
        "every",
        "",
    ),
    "health": (
        "all",
        "",
    ),
    "heartbeat": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "hold_key": (
        "every",
        "",
    ),
    "hold_lane": (
        "id",
        "job_id",
    ),
    "list_attempts": (
        "id",
        "job_id",
    ),
    "list_ciphertexts": (
        "any",
        "",
    ),
    "list_declarations": (
        "refused",
        "each shard lists its own: jobq cluster check",
    ),
    "list_epochs": (
        "own",
        "",
    ),
    "list_inputs": (
        "id",
        "job_id",
    ),
    "list_jobs": (
        "all",
        "",
    ),
    "list_kinds": (
        "any",
        "",
    ),
    "list_limits": (
        "all",
        "",
    ),
    "list_logs": (
        "id",
        "job_id",
    ),
    "list_payload_schemas": (
        "any",
        "",
    ),
    "list_queue_grants": (
        "any",
        "",
    ),
    "list_queues": (
        "any",
        "",
    ),
    "list_router_statements": (
        "refused",
        "a shard writes them",
    ),
    "list_schedule_versions": (
        "schedule",
        "schedule",
    ),
    "list_schedules": (
        "all",
        "",
    ),
    "list_shards": (
        "own",
        "",
    ),
    "list_steps": (
        "id",
        "job_id",
    ),
    "list_undeclared_kinds": (
        "all",
        "",
    ),
    "list_undeliverable": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "list_versions": (
        "any",
        "",
    ),
    "list_workers": (
        "all",
        "",
    ),
    "listen_events": (
        "refused",
        "who waits listens on the shard",
    ),
    "log": (
        "id",
        "job_id",
    ),
    "maintain": (
        "all",
        "",
    ),
    "metrics": (
        "all",
        "",
    ),
    "next_due": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "next_tick": (
        "any",
        "",
    ),
    "open_batch": (
        "lot",
        "",
    ),
    "page_definitions": (
        "any",
        "",
    ),
    "pause_endpoint": (
        "every",
        "",
    ),
    "pause_queue": (
        "every",
        "",
    ),
    "pause_schedule": (
        "schedule",
        "schedule",
    ),
    "preview_cron": (
        "any",
        "",
    ),
    "preview_schedule": (
        "schedule",
        "schedule",
    ),
    "put_config": (
        "every",
        "",
    ),
    "put_endpoint": (
        "every",
        "",
    ),
    "put_epoch": (
        "own",
        "router.sql",
    ),
    "put_kind": (
        "every",
        "",
    ),
    "put_limit": (
        "every",
        "",
    ),
    "put_payload_spec": (
        "every",
        "",
    ),
    "put_queue": (
        "every",
        "",
    ),
    "put_secret": (
        "every",
        "",
    ),
    "put_shard": (
        "own",
        "router.sql",
    ),
    "queue_stats": (
        "all",
        "",
    ),
    "rate_limited": (
        "id",
        "job_id",
    ),
    "ready": (
        "all",
        "",
    ),
    "recover": (
        "all",
        "",
    ),
    "redrive": (
        "id",
        "job_id",
    ),
    "redrive_many": (
        "some",
        "max_jobs",
    ),
    "redrive_tree": (
        "id",
        "job_id",
    ),
    "release": (
        "id",
        "job_id",
    ),
    "release_key": (
        "every",
        "",
    ),
    "release_many": (
        "split",
        "job_ids",
    ),
    "replica_lag": (
        "refused",
        "each shard has standbys of its own",
    ),
    "resume_endpoint": (
        "every",
        "",
    ),
    "resume_queue": (
        "every",
        "",
    ),
    "resume_schedule": (
        "schedule",
        "schedule",
    ),
    "retire_schedule": (
        "schedule",
        "schedule",
    ),
    "retire_worker": (
        "every",
        "",
    ),
    "revoke_queue": (
        "every",
        "",
    ),
    "rotate_secret": (
        "every",
        "",
    ),
    "run_calls": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "run_schedule": (
        "schedule",
        "schedule",
    ),
    "save_step": (
        "id",
        "job_id",
    ),
    "save_steps": (
        "split",
        "job_ids",
    ),
    "schedule_status": (
        "schedule",
        "schedule",
    ),
    "seal_batch": (
        "id",
        "batch_id",
    ),
    "set_progress": (
        "id",
        "job_id",
    ),
    "settings": (
        "any",
        "",
    ),
    "shard_of": (
        "own",
        "",
    ),
    "show_definition": (
        "any",
        "",
    ),
    "show_graph": (
        "id",
        "job_id",
    ),
    "signal": (
        "id",
        "job_id",
    ),
    "test_endpoint": (
        "lot",
        "",
    ),
    "tick": (
        "all",
        "",
    ),
    "tick_in": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
    "update_schedule": (
        "schedule",
        "schedule",
    ),
    "wait": (
        "refused",
        "who waits listens on the shard",
    ),
    "wait_for": (
        "id",
        "job_id",
    ),
    "work": (
        "refused",
        "workers are connected to each shard: jobq worker --database URL --database URL",
    ),
}
"""By the function's name: its class and what that needs to know."""
