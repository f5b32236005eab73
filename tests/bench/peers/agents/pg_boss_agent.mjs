// pg-boss with large batches, bursts and notifications.
import { PgBoss } from "pg-boss";
import { keyOf, main, stopped, versionOf } from "./agent.mjs";

const quiet = { schedule: false, supervise: false };

async function started(options) {
  const boss = new PgBoss(options);
  boss.on("error", () => {});
  await boss.start();
  return boss;
}

await main({
  chunk: 10_000,
  async install(url) {
    const boss = await started({ connectionString: url, ...quiet });
    for (const name of ["noop", "stamp"]) await boss.createQueue(name, { notify: true });
    await boss.createQueue("keyed");
    await boss.stop({ graceful: false });
    return versionOf("pg-boss");
  },
  async producer(url) {
    const boss = await started({ connectionString: url, max: 1, migrate: false, ...quiet });
    return {
      add: (kind, payload) => boss.send(kind, payload),
      addMany: (payloads) => boss.insert("noop", payloads.map((data) => ({ data }))),
      addKeyed: (payloads) =>
        boss.insert("keyed", payloads.map((data) => ({ data, group: { id: keyOf(data) } }))),
      close: () => boss.stop({ graceful: false }),
    };
  },
  async work(url, notes) {
    const boss = await started({ connectionString: url, useListenNotify: true });
    const options = {
      batchSize: 2000,
      localConcurrency: 2,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
    };
    await boss.work("noop", options, async (jobs) => {
      for (const _job of jobs) notes.noop();
    });
    await boss.work("stamp", options, async (jobs) => {
      for (const job of jobs) notes.stamp(job.data.n);
    });
    // A batch that has one job of each key is full, so that the next is fetched at once.
    const keyed = { ...options, batchSize: 1000, localConcurrency: 1, groupConcurrency: 1 };
    await boss.work("keyed", keyed, async (jobs) => {
      for (const _job of jobs) notes.noop();
    });
    await stopped();
    await boss.stop({ timeout: 5000 });
  },
});
