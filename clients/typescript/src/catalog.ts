// Made by generate.py from the database's catalog; do not edit.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
/** As PostgreSQL writes it, such as "30 s"; what comes back depends on the driver's parser. */
export type Interval = string | object;

export interface Functions {
  /** Marks the listening session as waiting on these queues; returns true if no enqueue in progress could be missed. */
  begin_wait: { given: { queues: string[] }; row: { begin_wait: boolean } };
  /** Cancels a waiting job, or requests cancellation of a running one, and returns which. */
  cancel: { given: { job_id: string; reason?: string | null }; row: { cancel: string } };
  /** Leases up to max_jobs runnable jobs to a worker: by queue as given, then priority, due time and id. */
  claim: { given: { queues: string[]; worker: string; max_jobs?: number | null; max_limited?: number | null; except_kinds?: string[] | null; kinds?: string[] | null }; row: { job_id: string | null; attempt: number | null; kind: string | null; payload: Json | null; metadata: Json | null; queue: string | null; max_attempts: number | null; timeout: Interval | null; lease_expires_at: Date | null; run_at: Date | null; created_at: Date | null; idempotency_key: string | null; lease: Interval | null; delivery_version: number | null; is_awaited: boolean | null } };
  /** Ends an attempt as succeeded: returns true the first time, false when repeated; raises an error if the lease is lost. */
  complete: { given: { job_id: string; attempt: number; result?: Json | null }; row: { complete: boolean } };
  /** Ends many attempts as succeeded, and returns for each whether it still had its lease. */
  complete_many: { given: { job_ids: string[]; attempts: number[]; results?: Json | null }; row: { job_id: string | null; attempt: number | null; outcome: string | null } };
  /** Ends an attempt as cancelled, if cancellation was requested. */
  confirm_cancel: { given: { job_id: string; attempt: number }; row: { confirm_cancel: null } };
  /** Returns the time until the next job of these queues is runnable, or null if none waits. */
  due_in: { given: { queues: string[]; except_kinds?: string[] | null }; row: { due_in: Interval } };
  /** Emits an event for all jobs that wait for it now or later; returns true for the first emit. */
  emit: { given: { event: string; payload?: Json | null }; row: { emit: boolean } };
  /** Ends the waiting of the session, so that it is no longer notified. */
  end_wait: { given: {  }; row: { end_wait: null } };
  /** Adds a job in the caller's transaction and returns its id, or the id of the existing job with the same key. */
  enqueue: { given: { kind: string; payload?: Json | null; queue?: string | null; run_at?: Date | null; priority?: number | null; max_attempts?: number | null; timeout?: Interval | null; idempotency_key?: string | null; dedup_key?: string | null; dedup?: string | null; metadata?: Json | null; concurrency_key?: string | null; expires_at?: Date | null; after?: string[] | null; after_failure?: string | null; batch_id?: string | null; cost?: string | null }; row: { enqueue: string } };
  /** Adds many jobs, all or none, and returns for each its id and whether it was created. */
  enqueue_many: { given: { jobs: Json }; row: { ordinal: number | null; job_id: string | null; created: boolean | null } };
  /** Ends a batch of attempts and claims the next jobs, in one call and one commit. */
  exchange: { given: { queues: string[]; worker: string; max_jobs: number; job_ids?: string[] | null; attempts?: number[] | null; results?: Json | null; failures?: Json | null; max_limited?: number | null; except_kinds?: string[] | null }; row: { outcome: string | null; job_id: string | null; attempt: number | null; kind: string | null; payload: Json | null; metadata: Json | null; queue: string | null; max_attempts: number | null; timeout: Interval | null; lease_expires_at: Date | null; run_at: Date | null; created_at: Date | null; idempotency_key: string | null; lease: Interval | null; delivery_version: number | null; is_awaited: boolean | null } };
  /** Ends an attempt as failed and returns the new state: retrying, dead or cancelled. */
  fail: { given: { job_id: string; attempt: number; error: string; error_code?: string | null; retryable?: boolean | null; retry_in?: Interval | null; details?: Json | null }; row: { fail: string } };
  /** Ends many attempts as failed, and returns the new state of each, null if the lease was lost. */
  fail_many: { given: { failures: Json }; row: { job_id: string | null; attempt: number | null; state: string | null } };
  /** Returns one job, live or archived. */
  get_job: { given: { job_id: string }; row: { job_id: string | null; kind: string | null; queue: string | null; state: string | null; previous_state: string | null; payload: Json | null; result: Json | null; run_at: Date | null; priority: number | null; attempt: number | null; attempts: number | null; max_attempts: number | null; timeout: Interval | null; lease: Interval | null; worker: string | null; claimed_at: Date | null; heartbeat_at: Date | null; lease_expires_at: Date | null; cancel_requested_at: Date | null; cancel_reason: string | null; idempotency_key: string | null; dedup_key: string | null; concurrency_key: string | null; last_error_code: string | null; last_error: string | null; metadata: Json | null; progress: Json | null; schedule_id: string | null; slot_at: Date | null; region: string | null; created_at: Date | null; finished_at: Date | null; delivery_version: number | null; expires_at: Date | null; batch_id: string | null; cost: string | null; updated_at: Date | null } };
  /** Extends the leases of a worker's jobs, and returns which are lost and which are to be cancelled. */
  heartbeat: { given: { worker: string; job_ids: string[]; attempts: number[]; queues?: string[] | null; except_kinds?: string[] | null; release?: string | null; stuck?: number | null }; row: { job_id: string | null; attempt: number | null; outcome: string | null } };
  /** Returns the results of the steps of a job, in order. */
  list_steps: { given: { job_id: string }; row: { name: string | null; value: Json | null; attempt: number | null; saved_at: Date | null } };
  /** Adds a line to a job's log. */
  log: { given: { job_id: string; attempt: number; level: string; message: string }; row: { log: null } };
  /** Recovers expired leases, ends expired jobs, repairs rows that bypassed the triggers, releases jobs whose parents have ended, fires due schedules, deletes old jobs, keys, workers, steps and events, keeps the history for charts, and creates and drops partitions. */
  maintain: { given: {  }; row: { task: string | null; affected: string | null; has_more: boolean | null } };
  /** Returns the time until maintain() has urgent work, or null if there is none. */
  maintain_in: { given: {  }; row: { maintain_in: Interval } };
  /** Enqueues a job of each kind that has subscribed to an event, and returns their ids. */
  publish: { given: { event: string; payload?: Json | null; metadata?: Json | null; idempotency_key?: string | null }; row: { kind: string | null; job_id: string | null } };
  /** Returns a leased job to its queue without counting the attempt, and returns the new state. */
  release: { given: { job_id: string; attempt: number; run_at?: Date | null }; row: { release: string } };
  /** Returns leased jobs to their queues without counting the attempts. */
  release_many: { given: { job_ids: string[]; attempts: number[]; run_at?: Date | null }; row: { job_id: string | null; attempt: number | null; state: string | null } };
  /** Removes a stopping worker from the list of workers. */
  retire_worker: { given: { worker: string }; row: { retire_worker: null } };
  /** Saves the result of a step of a job, and returns the saved result: the first one is kept. */
  save_step: { given: { job_id: string; attempt: number; name: string; value: Json }; row: { save_step: Json } };
  /** Stores the progress of the running attempt. */
  set_progress: { given: { job_id: string; attempt: number; progress: Json }; row: { set_progress: null } };
  /** Sends a signal to a job that waits for it now or later; returns true for the first one of this name. */
  signal: { given: { job_id: string; name: string; payload?: Json | null }; row: { signal: boolean } };
  /** Reports what a running attempt has really cost, and corrects its rates and budgets, up or down. */
  spend: { given: { job_id: string; attempt: number; cost: string }; row: { spend: null } };
  /** Asks for a notification on jobq_ended when this job ends; returns true if it has already ended. The session must listen. */
  wait: { given: { job_id: string }; row: { wait: boolean } };
  /** Waits for an event or a signal: returns what has arrived, or that the job was returned to its queue until it arrives. */
  wait_for: { given: { job_id: string; attempt: number; event: string; timeout?: Interval | null }; row: { outcome: string | null; payload: Json | null } };
}

/** The SQL types of their arguments. */
export const argumentTypes: {
  [name in keyof Functions]: { [argument: string]: string }
} = {
  begin_wait: { queues: "text[]" },
  cancel: { job_id: "uuid", reason: "text" },
  claim: { queues: "text[]", worker: "text", max_jobs: "integer", max_limited: "integer", except_kinds: "text[]", kinds: "text[]" },
  complete: { job_id: "uuid", attempt: "integer", result: "jsonb" },
  complete_many: { job_ids: "uuid[]", attempts: "integer[]", results: "jsonb" },
  confirm_cancel: { job_id: "uuid", attempt: "integer" },
  due_in: { queues: "text[]", except_kinds: "text[]" },
  emit: { event: "text", payload: "jsonb" },
  end_wait: {  },
  enqueue: { kind: "text", payload: "jsonb", queue: "text", run_at: "timestamp with time zone", priority: "integer", max_attempts: "integer", timeout: "interval", idempotency_key: "text", dedup_key: "text", dedup: "text", metadata: "jsonb", concurrency_key: "text", expires_at: "timestamp with time zone", after: "uuid[]", after_failure: "text", batch_id: "uuid", cost: "numeric" },
  enqueue_many: { jobs: "jsonb" },
  exchange: { queues: "text[]", worker: "text", max_jobs: "integer", job_ids: "uuid[]", attempts: "integer[]", results: "jsonb", failures: "jsonb", max_limited: "integer", except_kinds: "text[]" },
  fail: { job_id: "uuid", attempt: "integer", error: "text", error_code: "text", retryable: "boolean", retry_in: "interval", details: "jsonb" },
  fail_many: { failures: "jsonb" },
  get_job: { job_id: "uuid" },
  heartbeat: { worker: "text", job_ids: "uuid[]", attempts: "integer[]", queues: "text[]", except_kinds: "text[]", release: "text", stuck: "integer" },
  list_steps: { job_id: "uuid" },
  log: { job_id: "uuid", attempt: "integer", level: "text", message: "text" },
  maintain: {  },
  maintain_in: {  },
  publish: { event: "text", payload: "jsonb", metadata: "jsonb", idempotency_key: "text" },
  release: { job_id: "uuid", attempt: "integer", run_at: "timestamp with time zone" },
  release_many: { job_ids: "uuid[]", attempts: "integer[]", run_at: "timestamp with time zone" },
  retire_worker: { worker: "text" },
  save_step: { job_id: "uuid", attempt: "integer", name: "text", value: "jsonb" },
  set_progress: { job_id: "uuid", attempt: "integer", progress: "jsonb" },
  signal: { job_id: "uuid", name: "text", payload: "jsonb" },
  spend: { job_id: "uuid", attempt: "integer", cost: "numeric" },
  wait: { job_id: "uuid" },
  wait_for: { job_id: "uuid", attempt: "integer", event: "text", timeout: "interval" },
};
