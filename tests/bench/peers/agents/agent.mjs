// What the agents in Node.js share; agent.py says what the verbs mean.
import { readFileSync, writeFileSync, openSync, writeSync, existsSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const NOTE_EVERY = 100;
const PAD = "x".repeat(78);

export const monotonic = () => Number(process.hrtime.bigint()) / 1e9;

/** The version of an installed package. */
export function versionOf(name) {
  return JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;
}

/** Return at SIGTERM. */
export function stopped() {
  return new Promise((resolve) => process.once("SIGTERM", resolve));
}

function notes() {
  const file = openSync(process.env.NOTES, "a");
  let count = 0;
  return {
    noop() {
      count += 1;
      if (count % NOTE_EVERY === 1) writeSync(file, `${process.pid} ${count} ${monotonic()}\n`);
    },
    stamp(number) {
      writeSync(file, `${number} ${monotonic()}\n`);
    },
  };
}

async function waitAtGate() {
  writeFileSync(`${process.env.GATE}.${process.pid}`, "");
  while (!existsSync(process.env.GATE)) await sleep(1);
}

/** The key of a payload's job. */
export const keyOf = (payload) => `key ${payload.n % 1000}`;

const payload = (n) => ({ n, pad: PAD });

const verbs = {
  async install(agent, url) {
    return { version: await agent.install(url) };
  },
  async work(agent, url) {
    await waitAtGate();
    await agent.work(url, notes());
  },
  keyed: (agent, url, jobs, seconds) => verbs.bulk(agent, url, jobs, seconds, "addKeyed"),
  async bulk(agent, url, jobs, seconds, how = "addMany") {
    const producer = await agent.producer(url);
    const chunks = [];
    for (let first = 0; first < jobs; first += agent.chunk) {
      const size = Math.min(agent.chunk, jobs - first);
      chunks.push(Array.from({ length: size }, (_, n) => payload(first + n)));
    }
    let done = 0;
    const start = monotonic();
    for (const chunk of chunks) {
      await producer[how](chunk);
      done += chunk.length;
      if (monotonic() - start > seconds) break;
    }
    const spent = monotonic() - start;
    await producer.close();
    return { jobs: done, seconds: spent };
  },
  async single(agent, url, connections, seconds) {
    const producers = [];
    for (let n = 0; n < connections; n += 1) {
      producers.push(await agent.producer(url));
      await producers[n].add("noop", payload(0));
    }
    let done = 0;
    const start = monotonic();
    await Promise.all(
      producers.map(async (producer) => {
        while (monotonic() - start < seconds) {
          await producer.add("noop", payload(done));
          done += 1;
        }
      }),
    );
    const spent = monotonic() - start;
    for (const producer of producers) await producer.close();
    return { jobs: done, seconds: spent };
  },
  async ping(agent, url, samples) {
    const path = process.env.NOTES;
    const producer = await agent.producer(url);
    const delays = [];
    for (let number = 0; number < samples + 5; number += 1) {
      await sleep(30 + Math.random() * 40);
      const size = statSync(path).size;
      await producer.add("stamp", payload(number));
      const committed = monotonic();
      while (statSync(path).size === size) await sleep(1);
      const [noted, started] = readFileSync(path, "utf8").trimEnd().split("\n").at(-1).split(" ");
      if (number < 5) continue;
      if (Number(noted) !== number) throw new Error(`${noted} started for ${number}`);
      delays.push(Number(started) - committed);
    }
    await producer.close();
    return { delays };
  },
  async pace(agent, url, rate, seconds) {
    const producer = await agent.producer(url);
    const committed = [];
    const start = monotonic();
    for (let number = 0; number < rate * seconds; number += 1) {
      const early = start + number / rate - monotonic();
      if (early > 0) await sleep(early * 1000);
      if (monotonic() - start > seconds * 1.5) break;
      await producer.add("stamp", payload(number));
      committed.push(monotonic());
    }
    const spent = monotonic() - start;
    await producer.close();
    return { committed, seconds: spent };
  },
};

export async function main(agent) {
  const [verb, url, ...numbers] = process.argv.slice(2);
  const answer = await verbs[verb](agent, url, ...numbers.map(Number));
  // What is left open must not keep the process, but the answer must get out first.
  process.stdout.write(answer ? `${JSON.stringify(answer)}\n` : "", () => process.exit(0));
}
