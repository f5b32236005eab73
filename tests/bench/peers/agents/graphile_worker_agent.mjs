// graphile-worker with the batching that its page on performance describes.
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";
import { main, stopped, versionOf } from "./agent.mjs";

const logger = new Logger(() => () => {});

await main({
  chunk: 10_000,
  async install(url) {
    await runMigrations({ connectionString: url, logger });
    return versionOf("graphile-worker");
  },
  async producer(url) {
    const pgPool = new pg.Pool({ connectionString: url, max: 1 });
    pgPool.on("error", () => {});
    const utils = await makeWorkerUtils({ pgPool, logger });
    return {
      add: (kind, payload) => utils.addJob(kind, payload),
      addMany: (payloads) =>
        utils.addJobs(payloads.map((payload) => ({ identifier: "noop", payload }))),
      async close() {
        await utils.release();
        await pgPool.end();
      },
    };
  },
  async work(url, notes) {
    const runner = await run({
      preset: {
        worker: {
          connectionString: url,
          concurrentJobs: 24,
          maxPoolSize: 25,
          localQueue: { size: 500 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          logger,
        },
      },
      noHandleSignals: true,
      taskList: {
        noop: async () => notes.noop(),
        stamp: async (payload) => notes.stamp(payload.n),
      },
    });
    await stopped();
    await runner.stop();
  },
});
