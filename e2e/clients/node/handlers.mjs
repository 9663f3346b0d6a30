// The worker of the tests: node handlers.mjs DOMAIN TASKLIST
//
// It says on standard output when it begins the task `gate`, and when it is to stop.
// A line on standard input opens the gate.
import { setTimeout as sleep } from "node:timers/promises";
import { work } from "../../../contracts/node/worker.mjs";
import { open } from "../../../contracts/node/yardmaster.mjs";

const [domain, tasklist] = process.argv.slice(2);
const client = await open(domain);
const stop = new AbortController();
process.once("SIGTERM", () => {
  stop.abort();
  console.log("stopping");
});
const opened = new Promise((resolve) => process.stdin.once("data", resolve));

/** The trace context of each run, by task. */
const runs = new Map();
const around = (task, run) => {
  runs.set(task.task_id, task.traceparent);
  return run();
};

await work(client, tasklist, {
  sum: ({ numbers, note }) => ({ sum: numbers.reduce((a, b) => a + b, 0), note }),
  echo: (payload) => payload,
  traced: (_, { task }) => ({ traceparent: task.traceparent, around: runs.get(task.task_id) }),
  flaky: (_, { task }) => {
    if (task.attempt < 3) throw new Error(`attempt ${task.attempt} of ${task.max_attempts}`);
    return task.attempt;
  },
  // Longer than its heartbeat timeout.
  long: async ({ ms }, { task, progress }) => {
    progress({ says: "still here" });
    await sleep(ms);
    return task.attempt;
  },
  // Until it is asked to stop; how long that took goes into the error.
  obedient: (_, { signal }) => new Promise((_resolve, reject) => {
    const began = performance.now();
    signal.onabort = () => reject(new Error(`${signal.reason} after ${Math.round(performance.now() - began)} ms`));
  }),
  gate: async () => {
    console.log("gate");
    await opened;
    return "finished";
  },
  huge: () => "x".repeat(300 * 1024),
  circular: () => {
    const result = {};
    result.self = result;
    return result;
  },
}, { stop: stop.signal, concurrency: 20, name: "handlers.mjs", around });
await client.close();
process.exit(); // standard input keeps it alive
