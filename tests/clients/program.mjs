// Publishes and emits twice, prints the answers, then works until SIGTERM.
import { call, emit, publish, Retry, Worker } from "../../clients/typescript/dist/jobq.js";
import { createRequire } from "node:module";

const pg = createRequire(new URL("../../clients/typescript/", import.meta.url))("pg");

class Busy extends Error {}
class VeryBusy extends Busy {}
class Gone extends Busy {}

const connectionString = process.env.DATABASE_URL;
const client = new pg.Client({ connectionString });
await client.connect();
const published = [], emitted = [];
for (let n = 0; n < 2; n++) {
  const options = { metadata: { by: "test" }, idempotency_key: "order-7" };
  published.push(await publish(client, "order.paid", { id: 7 }, options));
  emitted.push(await emit(client, "opened", { door: 1 }));
}
await client.end();
console.log(JSON.stringify({ published, emitted }));

async function run({ fail }) {
  switch (fail) {
    case "busy": throw new VeryBusy("busy");
    case "gone": throw new Gone("gone");
    case "outage": return await call(new pg.Pool({ host: "127.0.0.1", port: 1 }), "emit", { event: "never" });
    case "outcome": throw new Retry("later", { seconds: 50 });
    default: throw new RangeError("other");
  }
}
const handlers = {
  named: { run, retryOn: [Busy], discardOn: Gone, retryDelay: 100 },
  delayed: { run, retryDelay: (error, attempt) => (error instanceof Busy ? 200 * attempt : undefined) },
  broken: { run, retryDelay: () => "soon" },
};
try {
  new Worker({ connectionString, handlers: { wrong: { run, retryOn: "Busy" } } });
  process.exit(1);
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
}
process.exit(await new Worker({ connectionString, handlers, listen: false, poll: 0.2 }).run());
