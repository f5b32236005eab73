// BullMQ on PostgreSQL, with 32 jobs at a time.
import pg from "pg";
import { createPostgresBackend, Queue, runMigrations, Worker } from "bullmq";
import { main, stopped, versionOf } from "./agent.mjs";

const on = (url, max) => ({ connection: { connectionString: url, max } });

await main({
  chunk: 1_000,
  async install(url) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await runMigrations(client);
    await client.end();
    return versionOf("bullmq");
  },
  async producer(url) {
    const names = ["noop", "stamp"];
    const queues = Object.fromEntries(
      names.map((name) => [name, new Queue(name, on(url, 1), createPostgresBackend)]),
    );
    return {
      add: (kind, payload) => queues[kind].add(kind, payload),
      addMany: (payloads) => queues.noop.addBulk(payloads.map((data) => ({ name: "noop", data }))),
      close: () => Promise.all(Object.values(queues).map((queue) => queue.close())),
    };
  },
  async work(url, notes) {
    const options = { ...on(url, 10), concurrency: 32 };
    const workers = [
      new Worker("noop", async () => notes.noop(), options, createPostgresBackend),
      new Worker("stamp", async (job) => notes.stamp(job.data.n), options, createPostgresBackend),
    ];
    await stopped();
    await Promise.all(workers.map((worker) => worker.close()));
  },
});
