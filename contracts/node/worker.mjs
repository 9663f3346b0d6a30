// A worker: heartbeats, cancels within a moment, and a drain that finishes what runs and takes no more.
import { setTimeout as sleep } from "node:timers/promises";
import { answerIn, outcomeGrace, over, pause } from "./yardmaster.mjs";

/** @import { Failure, PolledTask } from "./api.d.ts" */
/** @import { Client } from "./yardmaster.mjs" */

/**
 * One attempt, as its handler sees it. `signal` aborts when it is to stop; the reason is "cancelled", "lost" (another
 * attempt has the task), "deadline" or "stopping". What `progress` was given last goes with the next heartbeat.
 * @typedef {{ task: PolledTask, signal: AbortSignal, progress: (value: unknown) => void }} Attempt
 */
/**
 * The value that a handler returns is the task's result. An error that it throws is a failure: the retry policy decides, or the error's
 * `nonRetryable` or `delayMs`. An error that is thrown after `signal` has aborted ends the attempt as its reason says.
 * @typedef {(payload: any, attempt: Attempt) => unknown} Handler
 */
/**
 * Calls `run`, which calls the handler, and returns or throws what it does: a place for a span, whose parent is `task.traceparent`.
 * @typedef {(task: PolledTask, run: () => Promise<unknown>) => Promise<unknown>} Around
 */
/** @typedef {{ task: PolledTask, abort: AbortController, progress?: unknown }} Held */

const beatEvery = 10_000; // ms, or a third of the task's heartbeat timeout
const progressMax = 4096;
const pollWait = 30_000; // ms

/** @param {any} error what a handler threw @param {unknown} reason why its signal aborted @returns {Partial<Failure>} */
function failureOf(error, reason) {
  const message = String(error?.message ?? error).slice(0, 1000).toWellFormed();
  if (reason === "stopping") return { message, not_started: true };
  if (reason === "cancelled") return { message, error_type: "cancelled", non_retryable: true };
  const error_type = String(error?.name ?? "Error").slice(0, 30).toWellFormed();
  return error?.nonRetryable ? { message, error_type, non_retryable: true } : { message, error_type, delay_ms: error?.delayMs };
}

/**
 * Runs the tasks of a tasklist, each by the handler of its type, until `stop` aborts. Then it takes no more, and
 * resolves when what runs has ended: by itself within `drainMs`, else handed back, which is no failure.
 * @param {Client} client
 * @param {string} tasklist
 * @param {Record<string, Handler>} handlers by type; at most 100
 * @param {{ stop: AbortSignal, concurrency?: number, drainMs?: number, name?: string, version?: string, around?: Around }} options concurrency
 *   1..1000; name and version are for people: of this worker, and of its program, 64 bytes at most; around is called for each run
 */
export async function work(client, tasklist, handlers, { stop, concurrency = 10, drainMs = 30_000, name, version, around = (_, run) => run() }) {
  const held = /** @type {Map<string, Held>} */ (new Map()); // by task id
  const running = /** @type {Set<Promise<unknown>>} */ (new Set());
  const hinted = /** @type {Held[]} */ ([]);
  let changed = () => {}; // called when an attempt has ended, and when the worker is to stop

  /** @param {Held[]} all */
  async function beat(all) {
    const tasks = all.map(({ task: { task_id, token }, progress }) => ({ task_id, token, progress }));
    const answer = await client.ask("tasks.heartbeat", { tasks }, answerIn).catch(() => undefined); // the next does as well
    answer?.verdicts.forEach(({ code, cancel_requested }, i) => {
      if (cancel_requested) all[i]?.abort.abort("cancelled");
      else if (over.includes(code)) all[i]?.abort.abort("lost");
    });
  }

  /** @param {PolledTask} task @param {Handler} handle */
  async function run(task, handle) {
    const mine = /** @type {Held} */ ({ task, abort: new AbortController() });
    const until = Date.now() + task.timeout_ms + outcomeGrace;
    const beats = setInterval(() => beat([mine]), Math.min(beatEvery, (task.heartbeat_timeout_ms ?? Infinity) / 3));
    const deadline = setTimeout(() => mine.abort.abort("deadline"), task.timeout_ms);
    const progress = (/** @type {unknown} */ value) => {
      if (Buffer.byteLength(JSON.stringify(value)) > progressMax) throw new RangeError(`progress is larger than ${progressMax} bytes`);
      mine.progress = value;
    };
    held.set(task.task_id, mine);
    try {
      const result = await around(task, async () => handle(task.payload, { task, signal: mine.abort.signal, progress }));
      await client.report(task, "tasks.complete", { result }, until);
    } catch (error) {
      await client.report(task, "tasks.fail", failureOf(error, mine.abort.signal.reason), until);
    }
    clearInterval(beats);
    clearTimeout(deadline);
    held.delete(task.task_id);
  }

  stop.addEventListener("abort", () => changed());
  const hints = client.cancels((ids) => {
    const mine = ids.flatMap((id) => held.get(id) ?? []).filter((one) => !hinted.includes(one));
    if (mine.length > 0 && hinted.length === 0) setTimeout(() => beat(hinted.splice(0)), 50); // one request, however many hints
    hinted.push(...mine);
  });
  for (let tries = 0; !stop.aborted; ) {
    while (running.size >= concurrency && !stop.aborted) await new Promise((resolve) => (changed = () => resolve(undefined)));
    const asked = Date.now();
    const request = { tasklist, types: Object.keys(handlers), max_tasks: concurrency - running.size, wait_ms: pollWait, worker: name, worker_version: version };
    const answer = await client.poll(request, stop).catch((error) => error);
    if (client.nc.isClosed()) throw answer;
    for (const task of Array.isArray(answer) ? answer : []) {
      const handle = stop.aborted ? undefined : handlers[task.type];
      const ended = handle ? run(task, handle) : client.report(task, "tasks.fail", { message: "the worker stops", not_started: true }, asked + outcomeGrace);
      running.add(ended);
      ended.finally(() => (running.delete(ended), changed()));
    }
    tries = answer.length > 0 || Date.now() - asked > pollWait / 2 ? 0 : tries + 1;
    if (tries % 10 === 4) console.error("polls fail:", String(answer));
    if (tries > 0 && !stop.aborted) await pause(tries, answer);
  }

  const ended = Promise.all(running);
  await Promise.race([ended, sleep(drainMs, undefined, { ref: false })]);
  held.forEach(({ abort }) => abort.abort("stopping"));
  await Promise.race([ended, sleep(5_000, undefined, { ref: false })]); // for handlers to obey
  hints.unsubscribe();
}
