// A worker in Node.js: node worker.mjs URL DOMAIN TASKLIST
//
// It runs tasks of two types until SIGTERM: `sum` adds the numbers of its payload,
// `flaky` fails until its third attempt. While it waits for work it says so on
// standard output, a line for each poll that ended.
import { connect } from "@nats-io/transport-node";
import { domain, login } from "./yardmaster.mjs";

const [url, name, tasklist] = process.argv.slice(2);
const nc = await connect({ servers: url, name: "worker.mjs", ...login() });
const call = domain(nc, name);

const handlers = {
  sum: (task) => ({ sum: task.payload.numbers.reduce((a, b) => a + b, 0), note: task.payload.note }),
  flaky: (task) => {
    if (task.attempt < 3) throw new Error(`attempt ${task.attempt} of ${task.max_attempts}`);
    return task.attempt;
  },
};

let stopping = false;
process.on("SIGTERM", () => { stopping = true; });

while (!stopping) {
  const { tasks = [] } = await call("tasks.poll", { tasklist, max_tasks: 50, wait_ms: 500, worker: "worker.mjs" });
  const done = [], failed = [];
  for (const task of tasks) {
    const { task_id, token } = task;
    try {
      done.push({ task_id, token, result: handlers[task.type](task) });
    } catch (e) {
      failed.push({ task_id, token, message: e.message, error_type: e.name });
    }
  }
  if (done.length) await call("tasks.complete", { tasks: done });
  if (failed.length) await call("tasks.fail", { tasks: failed });
  console.log(`${done.length} done, ${failed.length} failed`);
}
await nc.drain();
