/**
 * A producer and a worker for jobq, on the driver `pg`. It speaks docs/protocol.md.
 *
 *     await enqueue(client, "send_email", { to: "ada@example.org" });   // in client's transaction
 *
 *     const worker = new Worker({ connectionString, handlers: { send_email: async (payload) => … } });
 *     process.exit(await worker.run());
 */
import pg from "pg";
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { argumentTypes, type Functions, type Interval, type Json } from "./catalog.js";

export type { Functions, Interval, Json } from "./catalog.js";

/** A client, a pool or a transaction: whatever can run a query. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: any[] }>;
}

type Name = keyof Functions;
type Given<K extends Name> = Functions[K]["given"];
type Row<K extends Name> = Functions[K]["row"];

/** Call a function of jobq with named arguments; what is undefined is left out. */
export async function call<K extends Name>(
  db: Queryable, name: K, given: Given<K>, columns = "*",
): Promise<Row<K>[]> {
  const types = argumentTypes[name];
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  const list = entries.map(([argument], i) => `${argument} => $${i + 1}::${types[argument]}`);
  const values = entries.map(([argument, value]) =>
    types[argument] === "jsonb" && value !== null ? JSON.stringify(value) : value);
  try {
    return (await db.query(`select ${columns} from jobq.${name as string}(${list.join(", ")})`, values)).rows;
  } catch (error) {
    if (error instanceof Error && isAway(error)) outages.add(error);
    throw error;
  }
}

/** Errors of calls that may be repeated: the driver gives many of them no class and no code. */
const outages = new WeakSet<object>();

// ---- producers

export type Options = Omit<Given<"enqueue">, "kind" | "payload">;
export interface Enqueued { jobId: string; created: boolean }

/** Add a job in the transaction that `db` is in; it exists when that commits. */
export async function enqueue(
  db: Queryable, kind: string, payload: Json = {}, options: Options = {},
): Promise<Enqueued> {
  if (options.idempotency_key == null && options.dedup_key == null) {
    const [row] = await call(db, "enqueue", { kind, payload, ...options });
    return { jobId: row!.enqueue, created: true };
  }
  const [job] = await enqueueMany(db, [{ kind, payload, ...options }]);
  return job!;
}

/** Add many jobs with one call, all or none. */
export async function enqueueMany(db: Queryable, jobs: Given<"enqueue">[]): Promise<Enqueued[]> {
  const rows = await call(db, "enqueue_many", { jobs: jobs as unknown as Json });
  return rows.map((row) => ({ jobId: row.job_id!, created: row.created! }));
}

/** Enqueue a job of each kind that has subscribed to an event; return the ids of the jobs, by kind. */
export async function publish(
  db: Queryable, event: string, payload: Json = {}, options: Omit<Given<"publish">, "event" | "payload"> = {},
): Promise<{ [kind: string]: string }> {
  const rows = await call(db, "publish", { event, payload, ...options });
  return Object.fromEntries(rows.map((row) => [row.kind!, row.job_id!]));
}

/** Emit an event for the jobs that wait for it now or later; return whether it is the first of its name. */
export async function emit(db: Queryable, event: string, payload: Json = null): Promise<boolean> {
  const [row] = await call(db, "emit", { event, ...(payload === null ? {} : { payload }) });
  return row!.emit;
}

/** The awaited job is dead or was cancelled. */
export class JobFailed extends Error {
  constructor(readonly code: string, message: string) { super(message); }
}

/** Wait until a job has ended, and return its result. It must be committed; `db` is in no transaction. */
export async function result<R>(db: Queryable, job: TypedJob<R>, seconds?: number): Promise<R>;
export async function result(db: Queryable, job: Enqueued | string, seconds?: number): Promise<Json>;
export async function result(db: Queryable, job: Enqueued | string, seconds = Infinity): Promise<Json> {
  const job_id = typeof job === "string" ? job : job.jobId;
  const end = now() + seconds;
  for (let wait = 0.005; ; wait = Math.min(wait * 1.5, 0.25)) {
    const [found] = await call(db, "get_job", { job_id });
    if (found!.state === "succeeded") return found!.result;
    if (found!.state === "cancelled") throw new JobFailed("CANCELLED", found!.cancel_reason ?? "the job was cancelled");
    if (found!.state === "dead") throw new JobFailed(found!.last_error_code ?? "ERROR", found!.last_error ?? "the job is dead");
    if (now() > end) throw new JobFailed("TIMEOUT", `the job has not ended within ${seconds} s`);
    await pause(wait);
  }
}

export type CancelOutcome = "cancelled" | "cancel_requested" | "already_finished";

/** Cancel a waiting job, or ask the worker of a running one to stop. */
export async function cancel(db: Queryable, jobId: string, reason?: string): Promise<CancelOutcome> {
  const [row] = await call(db, "cancel", { job_id: jobId, ...(reason === undefined ? {} : { reason }) });
  return row!.cancel as CancelOutcome;
}

/** The symbolic code of an error of jobq, such as "LEASE_LOST"; undefined for any other. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && error.code?.startsWith("JQ") ? error.constraint : undefined;
}

/** Whether there was no answer, or another transaction was first: the call may be repeated. */
export function isAway(error: unknown): boolean {
  const state = (error as { code?: string } | null)?.code ?? "";
  return !/^[0-9A-Z]{5}$/.test(state) || /^(08|57P|53|40001|40P01|25006)/.test(state);
}

/** Whether the database refuses a result for what it is. */
function isUnfit(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(JQ00[56]|22...)$/.test(error.code ?? "");
}

// ---- what handlers throw

/** The attempt failed; try again, after `seconds` or the kind's backoff. */
export class Retry extends Error {
  constructor(message: string, readonly options: { code?: string; seconds?: number } = {}) { super(message); }
}
/** The job cannot be done, now or later. */
export class Permanent extends Error {
  constructor(readonly code: string, message: string) { super(message); }
}
/** Do it later; the attempt does not count. */
export class Snooze extends Error {
  constructor(readonly seconds: number) { super("put off"); }
}
/** The job waits for an event and has been given back; the handler must end. */
class Suspended extends Error {}

// ---- workers

export interface Job {
  readonly jobId: string; readonly attempt: number; readonly kind: string; readonly queue: string;
  readonly metadata: Json; readonly maxAttempts: number;
}

/** What a handler has of its attempt. */
export interface Context extends Job {
  /** Aborted when the handler should stop: cancelled, timed out, lost, or the end of the worker. */
  readonly signal: AbortSignal;
  /**
   * Complete the job in the transaction that `db` is in, that of the handler's own rows: they
   * commit together or not at all. Nothing that the handler returns after it is recorded; when
   * it returns without a commit, the attempt fails.
   */
  complete(db: Queryable, result?: Json): Promise<void>;
  /** Do something once, whatever becomes of the attempt. */
  step<T extends Json>(name: string, work: () => T | Promise<T>): Promise<T>;
  /** Wait for an event; the job is given back until it comes, and the handler starts anew. */
  waitFor(event: string, timeout?: Interval): Promise<Json>;
  progress(value: Json): Promise<void>;
  /** Report what the attempt has really cost, in place of the job's cost. The last report counts. */
  spend(cost: number): Promise<void>;
  log(message: string, level?: "DEBUG" | "INFO" | "WARN" | "ERROR"): Promise<void>;
}
export type Handler = (payload: any, context: Context) => Json | void | Promise<Json | void>;

type ErrorClass = abstract new (...given: any[]) => unknown;

/** Which errors of a handler are retried, and when. Outcomes, such as `Permanent`, and an unreachable database are not affected. */
export interface RetryRules {
  /** Jobs are retried only after errors of these classes. */
  retryOn?: ErrorClass | ErrorClass[];
  /** A job is dead at once after an error of these classes. */
  discardOn?: ErrorClass | ErrorClass[];
  /** Seconds before a retry, or a function that returns them; undefined is the kind's backoff. */
  retryDelay?: number | ((error: any, attempt: number) => number | undefined);
}
/** A handler with its rules. */
export interface RuledHandler extends RetryRules { run: Handler }

/** The handlers of a program, by kind. `satisfies Handlers` keeps the types of payloads and results. */
export interface Handlers { [kind: string]: Handler | RuledHandler }

type Run<H> = H extends { run: infer R } ? R : H;
/** The payload that a handler takes. */
export type PayloadOf<H> = Run<H> extends (payload: infer P, ...more: any[]) => unknown ? P : never;
/** What a handler returns, as it comes out of the database. */
export type ResultOf<H> = Run<H> extends (...given: any[]) => infer R
  ? Awaited<R> extends infer V ? (V extends void ? null : V) : never : never;

declare const resultType: unique symbol;
/** A job whose result has a type. */
export interface TypedJob<R> extends Enqueued { readonly [resultType]?: R }

/** `enqueue` and `enqueueMany` for the kinds of some handlers, with the types of their payloads. */
export interface Producer<H> {
  enqueue<K extends keyof H & string>(
    db: Queryable, kind: K, payload: PayloadOf<H[K]>, options?: Options,
  ): Promise<TypedJob<ResultOf<H[K]>>>;
  enqueueMany<K extends keyof H & string>(
    db: Queryable, kind: K, payloads: PayloadOf<H[K]>[], options?: Options,
  ): Promise<TypedJob<ResultOf<H[K]>>[]>;
}

/** Return a producer of the kinds of some handlers: `producer<typeof handlers>()`. */
export function producer<H>(): Producer<H> {
  return {
    enqueue: (db, kind, payload, options) => enqueue(db, kind, payload as Json, options),
    enqueueMany: (db, kind, payloads, options = {}) =>
      enqueueMany(db, payloads.map((payload) => ({ kind, payload: payload as Json, ...options }))),
  };
}

export interface WorkerOptions {
  connectionString: string;
  handlers: Handlers;
  queues?: string[];
  /** How many jobs run at a time. */
  concurrency?: number;
  /** Seconds between looks when nothing happens. */
  poll?: number;
  /** Seconds that running jobs have after `stop`. */
  grace?: number;
  /** Whether to be woken by notifications; a URL leads past a pooler. */
  listen?: boolean | string;
  name?: string;
  onError?: (error: unknown) => void;
}

type Settlement =
  | { end: "succeeded"; result: Json } | { end: "cancelled" } | { end: "released"; seconds: number }
  | { end: "failed"; error: string; code: string; retryable: boolean; seconds?: number };

class Held {
  readonly abort = new AbortController();
  settlement?: Settlement;
  isCancelRequested = false;
  isCompleted = false;
  timer?: NodeJS.Timeout;
  constructor(readonly job: Job, readonly payload: Json, readonly lease: number, readonly timeout: number, public heldAt: number) {}
  get key(): string { return `${this.job.jobId} ${this.job.attempt}`; }
  /** Whether its handler has left a transaction open for as long as a lease: the job comes back by that lease. */
  isLeftOpen(): boolean { return this.isCompleted && now() - this.heldAt > this.lease; }
}

const JOB = "outcome, job_id, attempt, kind, payload, metadata, queue, max_attempts," +
  " extract(epoch from lease)::float8 as lease, extract(epoch from timeout)::float8 as timeout";
const LONGEST_RETRY = 365 * 24 * 3600;
const now = (): number => performance.now() / 1000;
const jitter = (seconds: number): number => seconds * (0.5 + Math.random());

export class Worker {
  readonly name: string;
  private readonly queues: string[];
  private readonly concurrency: number;
  private readonly poll: number;
  private readonly onError: (error: unknown) => void;
  private readonly pool: pg.Pool;
  private readonly running = new Map<string, Held>();
  private readonly unknown = new Set<string>();
  private settled: Held[] = [];
  private listener: pg.Client | undefined;
  private isAnnounced = false;
  private isStopping = false;
  private isOver = false;
  private wakeUp: () => void = () => {};
  private isAwake = false;
  private beatAt = -Infinity;
  private isBeatWanted = false;
  private working: Promise<void> | undefined;
  private background: Promise<void>[] = [];

  constructor(private readonly options: WorkerOptions) {
    for (const [kind, handler] of Object.entries(options.handlers)) check(kind, handler);
    this.name = options.name ?? `${hostname()}:${process.pid}:${randomBytes(3).toString("hex")}`;
    this.queues = options.queues ?? ["default"];
    this.concurrency = options.concurrency ?? 20;
    this.poll = options.poll ?? 5;
    this.onError = options.onError ?? ((error) => console.error(error));
    this.pool = new pg.Pool({ ...this.connection(options.connectionString), max: 4, query_timeout: 10_000 });
    this.pool.on("error", () => {}); // an idle connection is gone; the next call has another
  }

  /** Work until SIGTERM or SIGINT; return the exit status. */
  async run(): Promise<number> {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void this.stop());
    this.start();
    await this.working;
    return 0;
  }

  /** Begin to work. */
  start(): void {
    this.working = this.work().finally(() => this.close());
    this.background = [this.beat(), this.maintain()];
    if (this.options.listen !== false) this.background.push(this.listen());
  }

  /** Claim nothing more; let jobs finish for the grace period, give back the others, and end. */
  async stop(): Promise<void> {
    if (!this.isStopping) {
      this.isStopping = true;
      void this.listener?.end().catch(() => {});
      const last = setTimeout(() => {
        for (const held of [...this.running.values()]) this.settle(held, { end: "released", seconds: 0 }, "the worker stops");
      }, (this.options.grace ?? 30) * 1000);
      void this.working?.finally(() => clearTimeout(last));
      this.wake();
    }
    await this.working;
  }

  private async close(): Promise<void> {
    this.isOver = true;
    this.wake();
    await call(this.pool, "retire_worker", { worker: this.name }).catch(this.onError);
    await this.pool.end().catch(() => {});
  }

  // ---- claiming and settling

  private async work(): Promise<void> {
    let failures = 0;
    let quietFor = 0.002;
    while (!(this.isStopping && this.running.size === 0 && this.settled.length === 0)) {
      this.isAwake = false;
      const batch = this.settled.splice(0);
      const room = this.isStopping ? 0 : this.concurrency - this.running.size;
      if (batch.length === 0 && room === 0) {
        await this.sleep(this.poll);
        continue;
      }
      try {
        const claimed = await this.exchange(batch, room);
        failures = 0;
        if (claimed > 0 || batch.length > 0) {
          quietFor = 0.002;
          if (claimed > 0 && this.isAnnounced) await this.announce("end_wait");
        } else if (this.listener && !this.isAnnounced) {
          this.isAnnounced = await this.announce("begin_wait");
          if (!this.isAnnounced) await this.sleep(quietFor = Math.min(quietFor * 2, 0.25));
        } else {
          const [due] = await call(this.pool, "due_in", { queues: this.queues, ...this.left() }, "extract(epoch from due_in)::float8 as due_in");
          await this.sleep(Math.min((due?.due_in as unknown as number | null) ?? Infinity, jitter(this.poll)));
        }
      } catch (error) {
        this.onError(error);
        await this.sleep(jitter(Math.min(0.1 * 2 ** failures++, 5)), true);
      }
    }
  }

  /** Settle a batch and claim; return how many jobs came. What has no answer is settled again. */
  private async exchange(batch: Held[], room: number): Promise<number> {
    const left = new Set(batch);
    try {
      for (const held of batch) {
        const { job: { jobId: job_id, attempt }, settlement } = held;
        if (settlement!.end === "cancelled") await this.alone(() => call(this.pool, "confirm_cancel", { job_id, attempt }));
        else if (settlement!.end === "released") await this.alone(() => this.pool.query(
          "select jobq.release($1, $2, now() + make_interval(secs => $3))", [job_id, attempt, settlement!.seconds]));
        else continue;
        left.delete(held);
      }
      const rest = [...left];
      try {
        const claimed = await this.settleAndClaim(rest, room);
        left.clear();
        return claimed;
      } catch (error) {
        if (isAway(error) || rest.length === 0) throw error;
        this.onError(error);
      }
      for (const held of rest) { // one of them was refused: find it
        await this.settleAlone(held);
        left.delete(held);
      }
      return 0;
    } catch (error) {
      this.settled.unshift(...left);
      throw error;
    }
  }

  private async settleAndClaim(batch: Held[], room: number): Promise<number> {
    const done = batch.filter((held) => held.settlement!.end === "succeeded");
    const failed = batch.filter((held) => held.settlement!.end === "failed");
    const sentAt = now();
    const rows = await call(this.pool, "exchange", {
      queues: this.queues, worker: this.name, max_jobs: room,
      job_ids: done.map((held) => held.job.jobId), attempts: done.map((held) => held.job.attempt),
      results: done.map((held) => (held.settlement as { result: Json }).result),
      ...(failed.length > 0 ? { failures: failed.map(failure) } : {}),
      ...this.left(),
    }, JOB);
    const held = new Map(batch.map((one) => [one.key, one]));
    let claimed = 0;
    for (const row of rows as any[]) {
      if (row.outcome === "claimed") {
        claimed++;
        this.begin(row, sentAt);
      } else if (row.outcome === "held") { // another transaction has the row: settle it later
        const one = held.get(`${row.job_id} ${row.attempt}`)!;
        if (one.isLeftOpen()) continue;
        setTimeout(() => { this.settled.push(one); this.wake(); }, 250);
      }
    }
    return claimed;
  }

  private async settleAlone(held: Held): Promise<void> {
    try {
      await this.settleAndClaim([held], 0);
    } catch (error) {
      if (isAway(error)) throw error;
      held.settlement = { end: "failed", error: text(error), code: "RESULT_REFUSED", retryable: false };
      await this.settleAndClaim([held], 0);
    }
  }

  /** Make a call that settles a job; one that was lost is none of ours. */
  private async alone(make: () => Promise<unknown>): Promise<void> {
    try {
      await make();
    } catch (error) {
      if (isAway(error)) throw error;
      this.onError(error);
    }
  }

  // ---- handlers

  private begin(row: any, heldAt: number): void {
    const job: Job = {
      jobId: row.job_id, attempt: row.attempt, kind: row.kind, queue: row.queue,
      metadata: row.metadata, maxAttempts: row.max_attempts,
    };
    const held = new Held(job, row.payload, row.lease, row.timeout, heldAt);
    this.running.set(held.key, held);
    const milliseconds = Math.min(held.timeout * 1000, 2 ** 31 - 1);
    held.timer = setTimeout(() => this.settle(held, {
      end: "failed", error: `it took longer than ${held.timeout} s`, code: "TIMEOUT", retryable: true,
    }, "timed out"), milliseconds);
    void this.handle(held);
  }

  private async handle(held: Held): Promise<void> {
    const declared = this.options.handlers[held.job.kind];
    if (!declared) { // give it back, and leave its kind to others from now on
      const isNew = !this.unknown.has(held.job.kind);
      this.unknown.add(held.job.kind);
      return this.settle(held, { end: "released", seconds: isNew ? 0 : 30 });
    }
    const handler: RuledHandler = typeof declared === "function" ? { run: declared } : declared;
    try {
      const result = (await handler.run(held.payload, this.context(held))) ?? null;
      this.settle(held, held.isCompleted ? uncommitted : { end: "succeeded", result: JSON.parse(JSON.stringify(result)) });
    } catch (error) {
      this.settle(held, settlementOf(error, held, handler));
    }
  }

  /** The kinds that are left to workers that have handlers for them. */
  private left(): { except_kinds?: string[] } {
    return this.unknown.size > 0 ? { except_kinds: [...this.unknown] } : {};
  }

  /** Note how an attempt has ended, unless that is known; undefined when nothing is to be settled. */
  private settle(held: Held, settlement: Settlement | undefined, reason?: string): void {
    if (!this.running.delete(held.key)) return;
    clearTimeout(held.timer);
    if (reason !== undefined) held.abort.abort(new Error(reason));
    if (settlement) {
      held.settlement = settlement;
      this.settled.push(held);
    }
    this.wake();
  }

  private context(held: Held): Context {
    const { jobId: job_id, attempt } = held.job;
    let known: Promise<Map<string, Json>> | undefined;
    const steps = (): Promise<Map<string, Json>> => known ??= attempt === 1
      ? Promise.resolve(new Map())
      : call(this.pool, "list_steps", { job_id }).then((rows) => new Map(rows.map((row) => [row.name!, row.value])));
    return {
      ...held.job,
      signal: held.abort.signal,
      complete: async (db, result = null) => {
        await call(db, "complete", { job_id, attempt, result }).catch((error) => {
          throw isUnfit(error) ? new Permanent("RESULT_REFUSED", text(error)) : error;
        });
        held.isCompleted = true;
      },
      step: async (name, work) => {
        const earlier = await steps();
        if (earlier.has(name)) return earlier.get(name) as any;
        const [saved] = await call(this.pool, "save_step", { job_id, attempt, name, value: await work() });
        return saved!.save_step as any;
      },
      waitFor: async (event, timeout) => {
        const ended = (await steps()).get(`event:${event}`) as { outcome: string; payload: Json } | undefined;
        const came = ended ?? (await call(this.pool, "wait_for", { job_id, attempt, event, ...(timeout === undefined ? {} : { timeout }) }))[0]!;
        if (came.outcome === "waiting") throw new Suspended();
        if (came.outcome === "timed_out") throw new Permanent("EVENT_TIMEOUT", `${event} did not come in time`);
        return came.payload;
      },
      progress: async (progress) => void await call(this.pool, "set_progress", { job_id, attempt, progress }),
      spend: async (cost) => void await call(this.pool, "spend", { job_id, attempt, cost: String(cost) }),
      log: async (message, level = "INFO") => void await call(this.pool, "log", { job_id, attempt, level, message }),
    };
  }

  // ---- heartbeats and upkeep, each on a connection of the pool

  private async beat(): Promise<void> {
    while (!this.isOver) {
      const sentAt = now();
      const asked = this.isBeatWanted;
      this.isBeatWanted = false;
      const due = [...this.running.values()].filter((held) => asked || sentAt - held.heldAt > held.lease / 3 - 0.1);
      try {
        if (due.length > 0 || sentAt - this.beatAt > 15) {
          const rows = await call(this.pool, "heartbeat", {
            worker: this.name, queues: this.queues, ...this.left(),
            job_ids: due.map((held) => held.job.jobId), attempts: due.map((held) => held.job.attempt),
          });
          this.beatAt = sentAt;
          rows.forEach((row, i) => this.heard(due[i]!, row.outcome!, sentAt));
        }
      } catch (error) {
        this.onError(error);
        for (const held of due) if (now() - held.heldAt > held.lease) this.settle(held, undefined, "the lease is lost");
      }
      if (!this.isBeatWanted) await pause(0.1);
    }
  }

  private heard(held: Held, outcome: string, sentAt: number): void {
    if (outcome === "lost") return this.settle(held, undefined, "the lease is lost");
    if (outcome === "held") return;
    held.heldAt = sentAt;
    if (outcome === "cancel_requested" && !held.isCancelRequested) {
      held.isCancelRequested = true;
      held.abort.abort(new Error("cancelled"));
    }
  }

  private async maintain(): Promise<void> {
    while (!this.isOver) {
      let seconds = jitter(3);
      try {
        const rows = await call(this.pool, "maintain", {});
        const [slot] = await call(this.pool, "maintain_in", {}, "extract(epoch from maintain_in)::float8 as maintain_in");
        seconds = Math.min(seconds, Math.max((slot?.maintain_in as unknown as number | null) ?? Infinity, 0.1));
        if (rows.some((row) => row.has_more)) seconds = 0;
      } catch (error) {
        if (!this.isOver) this.onError(error);
      }
      for (const end = now() + seconds; now() < end && !this.isOver;) await pause(Math.min(0.1, Math.max(end - now(), 0)));
    }
  }

  // ---- sleeping and waking

  private wake(): void { this.isAwake = true; this.wakeUp(); }

  private async sleep(seconds: number, deeply = false): Promise<void> {
    if (seconds <= 0 || (this.isAwake && !deeply)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(seconds, 3600) * 1000);
      if (!deeply) this.wakeUp = () => { clearTimeout(timer); resolve(); };
    });
    this.wakeUp = () => {};
  }

  private async announce(what: "begin_wait" | "end_wait"): Promise<boolean> {
    this.isAnnounced = false;
    const [row] = what === "end_wait" ? await call(this.listener!, what, {}) : await call(this.listener!, what, { queues: this.queues });
    return row && "begin_wait" in row ? row.begin_wait : false;
  }

  private async listen(): Promise<void> {
    const { listen, connectionString } = this.options;
    while (!this.isStopping) {
      const client = new pg.Client({ ...this.connection(typeof listen === "string" ? listen : connectionString), query_timeout: 3_000 });
      const ended = new Promise<void>((resolve) => { client.on("end", resolve); client.on("error", () => resolve()); });
      client.on("notification", ({ channel, payload }) => {
        if (!this.queues.includes(payload ?? "")) return;
        if (channel === "jobq") this.wake();
        else this.isBeatWanted = true;
      });
      try {
        await client.connect();
        await client.query("listen jobq");
        await client.query("listen jobq_cancel");
        this.listener = client;
        this.isBeatWanted = true;
        this.wake();
        await ended;
      } catch (error) {
        if (!this.isStopping) this.onError(error);
      }
      this.listener = undefined;
      this.isAnnounced = false;
      await client.end().catch(() => {});
      if (!this.isStopping) await pause(jitter(0.2));
    }
  }

  private connection(connectionString: string): pg.ClientConfig {
    return { connectionString, application_name: "jobq worker", connectionTimeoutMillis: 5_000, keepAlive: true };
  }
}

const pause = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

function failure(held: Held): { [name: string]: Json } {
  const { error, code, retryable, seconds } = held.settlement as Settlement & { end: "failed" };
  return {
    job_id: held.job.jobId, attempt: held.job.attempt, error, error_code: code, retryable,
    retry_in: seconds === undefined ? null : `${seconds} s`,
  };
}

/** What settles a job that its handler has completed: lost, and changing nothing, when that has committed. */
const uncommitted: Settlement = {
  end: "failed", error: "the handler completed the job, and did not commit", code: "NOT_COMMITTED", retryable: true,
};

function settlementOf(error: unknown, held: Held, rules: RetryRules): Settlement | undefined {
  if (error instanceof Suspended || codeOf(error) === "LEASE_LOST") return undefined;
  if (error instanceof Snooze) return { end: "released", seconds: error.seconds };
  if (held.isCancelRequested) return { end: "cancelled" };
  if (error instanceof Permanent) return { end: "failed", error: text(error), code: error.code, retryable: false };
  if (!(error instanceof Retry)) return failedByRules(error, held, rules);
  const { code = "ERROR", seconds } = error.options;
  return { end: "failed", error: text(error), code, retryable: true, ...(seconds === undefined ? {} : { seconds }) };
}

function failedByRules(error: unknown, held: Held, rules: RetryRules): Settlement & { end: "failed" } {
  const failed = { end: "failed" as const, error: text(error), code: "ERROR", retryable: true };
  if (isOutage(error)) return failed;
  try {
    if (isOf(error, rules.discardOn) || (rules.retryOn !== undefined && !isOf(error, rules.retryOn))) {
      return { ...failed, retryable: false };
    }
    const seconds = typeof rules.retryDelay === "function" ? rules.retryDelay(error, held.job.attempt) : rules.retryDelay;
    if (seconds == null) return failed;
    if (typeof seconds !== "number" || Number.isNaN(seconds)) throw new TypeError("retryDelay must be a number of seconds");
    return { ...failed, seconds: Math.min(Math.max(seconds, 0), LONGEST_RETRY) };
  } catch (broken) { // a rule itself has failed
    return { ...failed, error: text(broken) };
  }
}

function check(kind: string, handler: Handler | RuledHandler): void {
  if (typeof handler === "function") return;
  const classes = [handler.retryOn ?? [], handler.discardOn ?? []].flat();
  if (typeof handler.run !== "function" || !classes.every((one) => typeof one === "function")) {
    throw new TypeError(`the handler of ${kind} needs a function run; retryOn and discardOn are classes of errors`);
  }
}

const isOf = (error: unknown, classes: ErrorClass | ErrorClass[] = []): boolean =>
  [classes].flat().some((one) => error instanceof one);

const isOutage = (error: unknown): boolean =>
  error instanceof pg.DatabaseError ? isAway(error) : outages.has(error as object);

/** An error's text, whatever was thrown, as the database takes it. */
function text(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error).replaceAll("\0", "\ufffd").slice(0, 512);
  } catch {
    return "an error that cannot be shown";
  }
}
