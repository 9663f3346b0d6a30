// A client of Yardmaster: the official NATS client, JSON, and what each program would write again. Copy it.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { RequestError, connect, createInbox, credsAuthenticator, nkeyAuthenticator } from "@nats-io/transport-node";

/** @import { AdminVerbs, CancelHint, Code, DomainEvents, ErrorBody, ListRequest, PolledTask, PollRequest, SubmitRequest, SubmitResponse, Task, TaskState, TaskUpdate, Verbs, Verdict } from "./api.d.ts" */
/** @import { ConnectionOptions, Msg } from "@nats-io/transport-node" */

const askTimeout = 12_000; // ms; the engine itself answers within 10 s
/** How long a submit is repeated, ms: longer than the engine needs to be certain that nothing was stored by a clock that is behind. */
const submitTime = 45_000;

/** How long a cancel or an update is repeated, ms. */
const commandTime = 30_000;

/** The codes after which a request is repeated: nothing was stored, or this is unknown. */
const passing = ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "UNKNOWN"];
const pollGrace = 5_000; // ms after its wait that a poll's answer may come
const withdrawIn = 2_000; // ms that it takes at most to take a poll back
const resultMax = 400_000; // characters of an outcome: more than 256 KiB in base64, less than the largest message
const unansweredMax = 16; // polls that a poll may name
const unansweredFor = 10_000; // for how long after a poll was answered that names them
const pauseMax = 2_000; // ms
const getWait = 20_000; // ms that a get waits for the end of a task
const stepMax = 100; // tasks that are changed together
const pageTasks = 1000;
const passPause = 300; // ms between two passes over the tasks that match a filter
const quietPasses = 2; // passes without a new task that end the change of many
const stuckPasses = 10; // passes that changed nothing that end it

/** The states of tasks that are changed by a filter without states. @type {TaskState[]} */
const unfinished = ["waiting", "queued", "ready", "backoff"];

/** Whether a repeat may get another verdict. @param {Verdict} verdict */
const undecided = ({ code, final }) => !final && passing.includes(code);

/** How long a worker waits for an answer, ms; another try may reach another frontend. */
export const answerIn = 4_000;

/** How long past the deadline of an attempt its outcome is repeated, ms: a log that stands still ends no attempt. */
export const outcomeGrace = 60_000;

/** The verdicts that say that an attempt is over. */
export const over = ["STALE", "NOT_FOUND", "FAILED_PRECONDITION"];

/** The codes that end the repeats of an outcome. They are harmless after anything else, a code of a later version too. */
const final = ["OK", ...over, "INVALID_ARGUMENT", "PERMISSION_DENIED", "UNIMPLEMENTED"];

/** An error that the engine answered with; UNAVAILABLE too where there is no subscriber to answer. */
export class Refusal extends Error {
  /** @param {ErrorBody} body */
  constructor(body) {
    super(`${body.code}: ${body.message}`);
    this.name = "Refusal";
    /** @type {Code} */
    this.code = body.code;
    this.path = body.path;
    this.detail = body.detail;
    this.retryAfterMs = body.retry_after_ms;
  }
}

/**
 * Waits before another try: as long as the engine asked for, else from 50 ms on ever longer.
 * @param {number} tries how many have failed
 * @param {unknown} [error] what the last one said
 */
export function pause(tries, error) {
  const asked = error instanceof Refusal ? error.retryAfterMs : undefined;
  return sleep((asked ?? Math.min(25 * 2 ** tries, pauseMax / 1.5)) * (1 + Math.random() / 2));
}

/**
 * Where to connect to, and as which user, from the environment, as the yard command has it: NATS_URL; and for a sealed
 * cluster NATS_NKEY (path of a seed) or NATS_CREDS (path of a .creds file), YARD_INBOX_PREFIX (where its user's answers
 * come), NATS_CA (path), and NATS_CERT and NATS_KEY (paths) where the server wants a certificate.
 */
function environment({ NATS_URL, NATS_NKEY, NATS_CREDS, NATS_CA, NATS_CERT, NATS_KEY, YARD_INBOX_PREFIX } = process.env) {
  /** @type {ConnectionOptions} */
  const options = { servers: (NATS_URL ?? "nats://127.0.0.1:4222").split(","), inboxPrefix: YARD_INBOX_PREFIX };
  if (NATS_NKEY) options.authenticator = nkeyAuthenticator(Buffer.from(readFileSync(NATS_NKEY, "utf8").trim()));
  if (NATS_CREDS) options.authenticator = credsAuthenticator(() => readFileSync(NATS_CREDS)); // again at each reconnect
  if (NATS_CA || NATS_CERT) options.tls = { caFile: NATS_CA, certFile: NATS_CERT, keyFile: NATS_KEY };
  return options;
}

/**
 * Connects to a domain, and connects again for as long as the program runs.
 * @param {string} domain
 * @param {ConnectionOptions} [options] go before the environment's
 */
export async function open(domain, options) {
  const all = { maxReconnectAttempts: -1, ...environment(), ...options };
  return new Client(await connect(all), domain, all.inboxPrefix);
}

/** The answer in a message. @param {Msg} message @returns {any} */
function read(message) {
  if (message.headers?.code === 503 && message.data.length === 0) throw absent();
  if (message.headers?.has("Nats-Service-Error-Code")) throw new Refusal(message.json());
  return message.json();
}

/** @param {unknown} e @returns {string} */
const codeOf = (e) => (e instanceof Refusal ? e.code : "UNKNOWN");

const absent = () => new Refusal({ code: "UNAVAILABLE", message: "no frontend runs" });

/** A domain, over the connection `nc`. */
export class Client {
  /**
   * Inboxes of the polls that were given up, until the engine knows: for 10 s after a poll was answered that named them.
   * @type {{ inbox: string, until: number }[]}
   */
  #unanswered = [];
  /** How far the engine's clock is ahead of ours, ms, once it is known. */
  #ahead = 0;
  /** The functions that end the polls under way when the connection breaks. @type {Set<() => void>} */
  #broken = new Set();

  /** @param {Awaited<ReturnType<typeof connect>>} nc @param {string} domain @param {string} [inboxPrefix] */
  constructor(nc, domain, inboxPrefix) {
    this.nc = nc;
    this.domain = domain;
    this.inboxPrefix = inboxPrefix;
    this.#watch();
  }

  async #watch() {
    for await (const { type } of this.nc.status()) {
      // An answer may be lost with the connection. A question without an answer is lost for certain.
      if (type === "disconnect" || type === "reconnect") this.#broken.forEach((end) => end());
    }
  }

  /** Closes the connection when what was sent is there, or 5 s have passed. */
  async close() {
    await Promise.race([this.nc.drain().catch(() => {}), sleep(5_000, undefined, { ref: false })]);
    await this.nc.close();
  }

  /** @param {string} subject @param {object} request @param {number} timeout */
  async #ask(subject, request, timeout) {
    const message = await this.nc.request(subject, JSON.stringify(request), { timeout }).catch((e) => {
      throw e instanceof RequestError && e.isNoResponders() ? absent() : e;
    });
    return read(message);
  }

  /**
   * Asks an endpoint of the domain, once.
   * @template {keyof Verbs} V
   * @param {V} verb
   * @param {Verbs[V]["request"]} request
   * @param {number} [timeout] ms
   * @returns {Promise<Verbs[V]["response"]>}
   */
  ask(verb, request, timeout = askTimeout) {
    return this.#ask(`yard.v1.${this.domain}.${verb}`, request, timeout);
  }

  /**
   * Asks an endpoint that is no domain's, once.
   * @template {keyof AdminVerbs} V
   * @param {V} verb
   * @param {AdminVerbs[V]["request"]} request
   * @returns {Promise<AdminVerbs[V]["response"]>}
   */
  admin(verb, request) {
    return this.#ask(`yard.v1.admin.${verb}`, request, askTimeout);
  }

  /** A UUID of version 7: the time by the engine's clock, and chance. */
  #requestId() {
    const ms = (Date.now() + this.#ahead).toString(16).padStart(12, "0");
    return `${ms.slice(0, 8)}-${ms.slice(8)}-7${randomUUID().slice(15)}`;
  }

  /** Whether our clock is off: the request with this id was not stored, nor will be. @param {unknown} e */
  #learnClock(e) {
    const now = e instanceof Refusal && e.path === "/request_id" && Number(e.detail?.now_ms);
    if (now) this.#ahead = now - Date.now();
    return Boolean(now);
  }

  /**
   * Submits tasks, and repeats for 45 s what is not stored or got no answer. The request has an id, so the tasks are
   * stored once.
   * @param {SubmitRequest} request
   * @returns {Promise<SubmitResponse>}
   */
  async submit(request) {
    const end = Date.now() + submitTime;
    const timeout = answerIn + (request.wait ? (request.wait_ms ?? 30_000) : 0);
    let request_id = this.#requestId();
    for (let tries = 1; ; tries++) {
      try {
        return await this.ask("tasks.submit", { ...request, request_id, tries }, timeout);
      } catch (e) {
        const clock = this.#learnClock(e);
        if (!(clock || passing.includes(codeOf(e))) || Date.now() > end) throw e;
        await pause(tries, e);
        if (clock) {
          request_id = this.#requestId();
          tries = 0; // the next try is the first one of this id
        }
      }
    }
  }

  /**
   * Waits until a task has ended, and returns it. Without `signal` it waits for as long as that takes.
   * @param {string} task_id
   * @param {AbortSignal} [signal]
   * @returns {Promise<Task>}
   */
  async wait(task_id, signal) {
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      try {
        const { task } = await this.ask("tasks.get", { task_id, wait_ms: getWait }, getWait + answerIn);
        if (task.finished_at_ms) return task;
        tries = 0;
      } catch (e) {
        if (!passing.includes(codeOf(e))) throw e;
        await pause(tries, e);
      }
    }
  }

  /**
   * The tasks that match a filter, the newest first, page by page, without payloads and events.
   * @param {ListRequest} [filter]
   */
  async *tasks(filter = {}) {
    for (let { cursor } = filter, more = true; more; more = Boolean(cursor)) {
      const { tasks = [], next_cursor } = await this.ask("tasks.list", { ...filter, cursor });
      yield* tasks;
      cursor = next_cursor;
    }
  }

  /**
   * Cancels up to 1000 tasks, and repeats for 30 s what is not decided. It returns a verdict for each one.
   * @param {string[]} task_ids
   * @param {string} [reason] for people
   * @returns {Promise<Verdict[]>}
   */
  async cancel(task_ids, reason) {
    const end = Date.now() + commandTime;
    /** @type {Map<string, Verdict>} */
    const all = new Map();
    for (let tries = 1; ; tries++) {
      const left = task_ids.filter((id) => undecided(all.get(id) ?? { task_id: id, code: "UNKNOWN" }));
      if (left.length === 0 || (Date.now() > end && all.size > 0)) return [...all.values()];
      try {
        const { verdicts } = await this.ask("tasks.cancel", { task_ids: left, reason });
        for (const verdict of verdicts) all.set(verdict.task_id, verdict);
        if (!verdicts.some(undecided)) continue;
        await pause(tries);
      } catch (e) {
        if (!passing.includes(codeOf(e)) || Date.now() > end) throw e;
        await pause(tries, e);
      }
    }
  }

  /**
   * Changes up to 100 tasks, and repeats for 30 s what is not decided. The request has an id, so each change is made
   * once. It returns a verdict for each one, with the task's new revision.
   * @param {TaskUpdate[]} tasks
   * @returns {Promise<Verdict[]>}
   */
  async update(tasks) {
    const end = Date.now() + commandTime;
    let [request_id, tries, unsure] = [this.#requestId(), 1, false];
    for (let tried = 1; ; tried++) {
      /** @type {unknown} */
      let failed;
      try {
        const { verdicts } = await this.ask("tasks.update", { tasks, request_id, tries });
        if (!verdicts.some(undecided) || Date.now() > end) return verdicts;
      } catch (e) {
        const clock = this.#learnClock(e);
        if (!(clock || passing.includes(codeOf(e))) || Date.now() > end) throw e;
        failed = e;
      }
      await pause(tried, failed);
      if (!failed || codeOf(failed) === "UNKNOWN") {
        unsure = true;
        tries++; // the engine may know this id
      } else if (!unsure) request_id = this.#requestId();
    }
  }

  /**
   * Cancels the tasks that match a filter and were created before the call: by default those that wait, are on disk,
   * are ready, or wait for their next attempt.
   * @param {ListRequest} filter
   * @param {{ reason?: string, rate?: number }} [options] rate: tasks per second, default 200
   */
  cancelAll(filter, { reason, rate } = {}) {
    return this.#all(filter, (task_ids) => this.cancel(task_ids, reason), rate);
  }

  /**
   * Makes one change of all tasks that `cancelAll` would cancel.
   * @param {ListRequest} filter
   * @param {Omit<TaskUpdate, "task_id" | "if_revision">} change
   * @param {{ rate?: number }} [options] rate: tasks per second, default 200
   */
  updateAll(filter, change, { rate } = {}) {
    return this.#all(filter, (ids) => this.update(ids.map((task_id) => ({ ...change, task_id }))), rate);
  }

  /**
   * Takes all tasks that match, in passes: tasks move between disk, memory and the timer store while they are listed.
   * @param {ListRequest} filter
   * @param {(ids: string[]) => Promise<Verdict[]>} send
   * @param {number} [rate]
   */
  async #all(filter, send, rate = 200) {
    const began = Date.now() + this.#ahead;
    const done = { found: 0, changed: 0, refused: 0 };
    /** Whether each task that was found is decided. @type {Map<string, boolean>} */
    const known = new Map();
    /** @param {string[]} step */
    const take = async (step) => {
      const rest = sleep((1000 * step.length) / rate);
      for (const verdict of step.length ? await send(step) : []) {
        if (undecided(verdict)) continue;
        known.set(verdict.task_id, true);
        done[verdict.code === "OK" ? "changed" : "refused"]++;
      }
      await rest;
    };
    const wanted = filter.states?.length ? filter.states : unfinished;
    // Tasks on disk have a list of their own. They come into memory meanwhile.
    const lists = [wanted.filter((s) => s === "queued"), wanted.filter((s) => s !== "queued")].filter((states) => states.length);
    for (let [quiet, stuck] = [0, 0]; quiet < quietPasses && stuck < stuckPasses; await sleep(passPause)) {
      const [found, changed] = [known.size, done.changed];
      for (const states of lists) {
        /** @type {string[]} */
        let step = [];
        for await (const { task_id, created_at_ms } of this.tasks({ ...filter, states, limit: pageTasks })) {
          if (created_at_ms > began || known.get(task_id) || step.includes(task_id)) continue;
          known.set(task_id, false);
          if (step.push(task_id) === stepMax) await take(step.splice(0));
        }
        await take(step);
      }
      done.found = known.size;
      quiet = known.size > found || done.changed + done.refused < done.found ? 0 : quiet + 1;
      stuck = done.changed > changed ? 0 : stuck + 1;
    }
    return done;
  }

  /**
   * Sends the outcome of an attempt and repeats it until there is a verdict, which is its answer. UNKNOWN: there was
   * none by `until`. A result that is refused is thrown, and ends the task if it is reported as a failure.
   * @param {PolledTask} task
   * @param {"tasks.complete" | "tasks.fail"} verb
   * @param {object} outcome the fields of a Completion or a Failure but the task's
   * @param {number} until by Date.now()
   * @returns {Promise<Code | "OK">}
   */
  async report({ task_id, token }, verb, outcome, until) {
    const refused = () => Object.assign(new Error("the result was refused"), { nonRetryable: true });
    if (JSON.stringify(outcome).length > resultMax) throw refused();
    for (let tries = 1; Date.now() < until; await pause(tries++)) {
      const code = await this.ask(verb, { tasks: [{ ...outcome, task_id, token }] }, answerIn).then(
        ({ verdicts: [verdict] }) => verdict?.code ?? "UNKNOWN",
        (error) => (error instanceof Refusal ? error.code : "UNKNOWN"),
      );
      if (code === "INVALID_ARGUMENT" && verb === "tasks.complete") throw refused();
      if (final.includes(code)) return code;
    }
    return "UNKNOWN";
  }

  /**
   * Hears of running tasks of the domain that were cancelled. It may miss some, and hear of some that were not: who
   * runs such a task sends a heartbeat, whose answer is the truth.
   * @param {(taskIds: string[]) => void} heard
   */
  cancels(heard) {
    return this.nc.subscribe(`yard.v1.${this.domain}.hint.cancel`, {
      callback: (error, message) => {
        try {
          if (!error) heard(/** @type {CancelHint} */ (message.json()).task_ids);
        } catch {} // anybody in the domain may send anything here
      },
    });
  }

  /**
   * Hears what becomes of the tasks of the domain, once its operator has turned events on: a kind (API.md lists them) and a tasklist, or all.
   * It may miss some, and hear of one twice: `tasks.get` is the truth.
   * @param {(events: DomainEvents) => void} heard
   * @param {{ kind?: string, tasklist?: string }} [filter]
   */
  events(heard, { kind = "*", tasklist = "*" } = {}) {
    return this.nc.subscribe(`yard.v1.${this.domain}.events.${kind}.${tasklist}`, {
      callback: (error, message) => {
        if (!error) heard(/** @type {DomainEvents} */ (message.json()));
      },
    });
  }

  /**
   * Polls once. When `stop` aborts, the poll is taken back: what has come by then is returned, and what comes later
   * goes to others at once.
   * @param {PollRequest & { tasklist: string }} request
   * @param {AbortSignal} stop
   * @returns {Promise<PolledTask[]>}
   */
  async poll(request, stop) {
    if (stop.aborted) return [];
    this.#unanswered = this.#unanswered.filter(({ until }) => Date.now() < until);
    const unanswered = this.#unanswered.map(({ inbox }) => inbox);
    const inbox = createInbox(this.inboxPrefix);
    const answers = this.nc.subscribe(inbox, { max: 1 });
    const end = () => answers.unsubscribe();
    // The server is done with the subscription when drain ends: an answer is here by then, or will find no one.
    const withdraw = () => {
      answers.drain().catch(end);
      setTimeout(end, withdrawIn).unref();
    };
    const timer = setTimeout(withdraw, (request.wait_ms ?? 0) + pollGrace);
    stop.addEventListener("abort", withdraw);
    this.#broken.add(end);
    try {
      const body = JSON.stringify(unanswered.length ? { ...request, unanswered } : request);
      this.nc.publish(`yard.v1.${this.domain}.tasks.poll.${request.tasklist}`, body, { reply: inbox });
      for await (const message of answers) {
        const { tasks = [] } = read(message);
        for (const given of this.#unanswered) {
          if (given.until === Infinity && unanswered.includes(given.inbox)) given.until = Date.now() + unansweredFor;
        }
        return tasks;
      }
      if (stop.aborted) return [];
      this.#unanswered = [...this.#unanswered, { inbox, until: Infinity }].slice(-unansweredMax);
      throw new Refusal({ code: "UNAVAILABLE", message: "the poll was not answered" });
    } finally {
      clearTimeout(timer);
      stop.removeEventListener("abort", withdraw);
      this.#broken.delete(end);
    }
  }
}
