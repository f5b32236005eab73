/** Connects the client to the conformance suite: docs/contributing/conformance.md. */
import pg from "pg";
import { createInterface } from "node:readline";
import { cancel, codeOf, enqueue, enqueueMany, Permanent, Retry, Snooze, Worker, type Context, type Json } from "./jobq.js";

type Order = { [name: string]: any };

const connectionString = process.env.DATABASE_URL!;
const pool = new pg.Pool({ connectionString, max: 2 });
pool.on("error", () => {});
const orders = new Map<string, (order: Order) => void>();
const early = new Map<string, Order[]>();
let worker: Worker | undefined;

const say = (line: Order): void => void process.stdout.write(JSON.stringify(line) + "\n");
const shown = (job: { jobId: string; created: boolean }): Order => ({ job_id: job.jobId, created: job.created });

/** Wait for the next order to the handler of a job. */
function ordered(key: string, signal: AbortSignal): Promise<Order> {
  const waiting = early.get(key)?.shift();
  if (waiting) return Promise.resolve(waiting);
  return new Promise((resolve, reject) => {
    const stop = (): void => { orders.delete(key); reject(signal.reason); };
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    orders.set(key, (order) => { orders.delete(key); signal.removeEventListener("abort", stop); resolve(order); });
  });
}

/** Have the handler do as it is told; what it has opened is closed, and so rolled back, at its end. */
async function handle(payload: Json, context: Context): Promise<Json> {
  const own = new pg.Client({ connectionString });
  own.on("error", () => {});
  try {
    return await obey(payload, context, own);
  } finally {
    void own.end().catch(() => {});
  }
}

async function obey(payload: Json, context: Context, own: pg.Client): Promise<Json> {
  const about = { job_id: context.jobId, attempt: context.attempt };
  const key = `${context.jobId} ${context.attempt}`;
  context.signal.addEventListener("abort", () => say({ event: "stopping", ...about }), { once: true });
  say({ event: "started", ...about, kind: context.kind, payload });
  let isTransactional = false;
  for (;;) {
    const order = await ordered(key, context.signal);
    switch (order.do) {
      case "return":
        if (!isTransactional) return order.value;
        await context.complete(own, order.value);
        if (order.commit !== false) await own.query("commit");
        return null;
      case "note":
        await own.connect();
        await own.query("begin");
        await own.query("insert into public.note values ($1)", [order.note]);
        isTransactional = true;
        say({ event: "noted", ...about });
        break;
      case "raise": throw new Error(order.message);
      case "retry": throw new Retry(order.message, { code: order.code, seconds: order.in });
      case "permanent": throw new Permanent(order.code, order.message);
      case "snooze": throw new Snooze(order.in);
      case "step": {
        let ran = false;
        const value = await context.step(order.name, () => { ran = true; return order.value; });
        say({ event: "step", ...about, value, ran });
        break;
      }
      case "spend":
        await context.spend(order.cost);
        say({ event: "spent", ...about });
        break;
      case "wait": say({ event: "arrived", ...about, payload: await context.waitFor(order.event) }); break;
      default: throw { toString() { throw new Error("cannot be shown"); } };
    }
  }
}

const answers: { [op: string]: (order: Order) => Promise<Order> } = {
  enqueue: async ({ op, id, kind, payload, ...options }) => shown(await enqueue(pool, kind, payload, options)),
  enqueue_many: async ({ jobs }) => ({ jobs: (await enqueueMany(pool, jobs)).map(shown) }),
  cancel: async ({ job_id }) => ({ outcome: await cancel(pool, job_id) }),
  transaction: async ({ note, jobs, end }) => {
    const client = await pool.connect();
    try {
      await client.query("begin");
      await client.query("insert into public.note values ($1)", [note]);
      const made = [];
      for (const { kind, payload, ...options } of jobs) made.push(shown(await enqueue(client, kind, payload, options)));
      await client.query(end);
      return { jobs: made };
    } finally {
      client.release();
    }
  },
  work: async ({ kind, queues, concurrency, poll, grace, listen }) => {
    worker = new Worker({ connectionString, handlers: { [kind]: handle }, queues, concurrency, poll, grace, listen });
    void worker.run().then((status) => process.exit(status));
    return {};
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const order: Order = JSON.parse(line);
  if (order.op === "handle") {
    const key = `${order.job_id} ${order.attempt}`;
    const take = orders.get(key);
    if (take) take(order);
    else early.set(key, [...(early.get(key) ?? []), order]);
    continue;
  }
  answers[order.op]!(order).then(
    (answer) => say({ id: order.id, ...answer }),
    (error) => say({ id: order.id, error: { sqlstate: /^[0-9A-Z]{5}$/.test(error.code) ? error.code : "", code: codeOf(error) ?? String(error) } }),
  );
}
await worker?.stop();
process.exit(0);
