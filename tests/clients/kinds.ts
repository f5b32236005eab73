// What the compiler knows of kinds; where it has to object, the line before says so.
import { producer, result, Worker, type Handlers, type Queryable } from "../../clients/typescript/dist/jobq.js";

const handlers = {
  async add(payload: { a: number; b: number }) { return { sum: payload.a + payload.b }; },
  greet: { run: (payload: { name: string }) => `Hello, ${payload.name}!`, retryOn: RangeError },
  async forget(_payload: { id: string }) {},
} satisfies Handlers;

export async function use(db: Queryable): Promise<void> {
  new Worker({ connectionString: "", handlers });
  const jobs = producer<typeof handlers>();

  const job = await jobs.enqueue(db, "add", { a: 1, b: 2 }, { priority: 5 });
  const sum: number = (await result(db, job)).sum;
  const greeting: string = await result(db, await jobs.enqueue(db, "greet", { name: "Ada" }));
  const nothing: null = await result(db, await jobs.enqueue(db, "forget", { id: "7" }));
  const [first] = await jobs.enqueueMany(db, "greet", [{ name: "Ada" }, { name: "Bob" }]);
  const untyped: unknown = await result(db, "some id");

  // @ts-expect-error: there is no such kind
  await jobs.enqueue(db, "subtract", { a: 1, b: 2 });
  // @ts-expect-error: the payload lacks a member
  await jobs.enqueue(db, "add", { a: 1 });
  // @ts-expect-error: the member has another type
  await jobs.enqueue(db, "greet", { name: 7 });
  // @ts-expect-error: the result is no string
  const wrong: string = await result(db, job);
  // @ts-expect-error: there is no such option
  await jobs.enqueue(db, "add", { a: 1, b: 2 }, { priorty: 5 });
  void [sum, greeting, nothing, first, untyped, wrong];
}
