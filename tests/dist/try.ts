// Runs a job with the npm package, and prints its result.
import pg from "pg";
import { producer, result, Worker, type Handlers } from "@jobq/client";

const connectionString = process.env.DATABASE_URL!;
const handlers = {
  async "from npm"(payload: { n: number }) {
    return { doubled: payload.n * 2 };
  },
} satisfies Handlers;
const worker = new Worker({ connectionString, queues: ["npm"], handlers });
worker.start();
const db = new pg.Pool({ connectionString });
const job = await producer<typeof handlers>().enqueue(db, "from npm", { n: 21 }, { queue: "npm" });
const { doubled } = await result(db, job, 60);
console.log(doubled);
await worker.stop();
await db.end();
