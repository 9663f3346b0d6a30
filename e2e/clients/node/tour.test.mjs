// A tour of a program in another language, with JSON and a NATS client:
// NATS_URL=nats://… YARD_DOMAIN=… node --test tour.test.mjs
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Client, Refusal, open } from "../../../contracts/node/yardmaster.mjs";

const client = await open(process.env.YARD_DOMAIN, { name: "tour" });
const { nc } = client;
const call = client.ask.bind(client);
after(() => nc.close());

const kinds = (task) => task.events.map((e) => e.kind).join(" ");

// One task, submitted and taken.
async function taken(tasklist, task) {
  const { results: [{ task_id: id, outcome }] } = await call("tasks.submit", { tasklist, tasks: [task] });
  assert.equal(outcome, "created");
  let polled;
  while (!polled) { // an answer may be empty any time, as when the tasklist's owner is replaced
    ({ tasks: [polled] } = await call("tasks.poll", { tasklist, max_tasks: 1, wait_ms: 20_000, worker: "tour" }, 30_000));
  }
  assert.equal(polled.task_id, id);
  return polled;
}

test("submit, poll, complete, get", async () => {
  const payload = { to: "ann@example.com", name: "Änne ✉", big: 9007199254740991, nested: [1, { a: null }], html: "<b>&</b>" };
  const task = await taken("first", { type: "mail.send", payload, priority: 2 });
  assert.deepEqual(task.payload, payload);
  assert.equal(task.type, "mail.send");
  assert.equal(task.priority, 2);
  assert.equal(task.attempt, 1);
  assert.equal(task.failures, undefined);
  assert.ok(task.timeout_ms > 0 && task.timeout_ms <= 300_000);
  const { verdicts } = await call("tasks.complete", { tasks: [{ task_id: task.task_id, token: task.token, result: ["sent", payload] }] });
  assert.deepEqual(verdicts, [{ task_id: task.task_id, code: "OK" }]);

  const { task: known } = await call("tasks.get", { task_id: task.task_id });
  assert.equal(known.state, "completed");
  assert.deepEqual(known.result, ["sent", payload]);
  assert.equal(kinds(known), "submitted started completed");
  assert.ok(known.created_at_ms > 1.7e12 && known.created_at_ms <= known.finished_at_ms);
});

test("a submit by a clock that is off", async () => {
  const now = Date.now;
  const loses = (client) => {
    const ask = client.ask.bind(client);
    client.ask = async (...request) => {
      client.ask = ask;
      await ask(...request).catch(() => {});
      throw new Error("the first answer is lost");
    };
    return client;
  };
  const submit = (lost) => {
    const client = new Client(nc, process.env.YARD_DOMAIN);
    return (lost ? loses(client) : client).submit({ tasklist: "clocks", tasks: [{ type: "x" }] });
  };
  for (const [seconds, lost] of [[-70], [-400], [90], [-85, true], [-400, true], [90, true]]) {
    Date.now = () => now() + seconds * 1000;
    try {
      const { results } = await submit(lost);
      assert.equal(results[0].outcome, "created");
    } finally {
      Date.now = now;
    }
  }
});

test("binary payloads", async () => {
  const bytes = Buffer.from([0, 1, 2, 254, 255]).toString("base64");
  const task = await taken("binary", { type: "x", payload: { $binary: bytes } });
  assert.deepEqual(task.payload, { $binary: bytes });
});

test("a poll waits for work", async () => {
  const poll = call("tasks.poll", { tasklist: "long", max_tasks: 1, wait_ms: 20_000 }, 30_000);
  const { results: [{ task_id: id }] } = await call("tasks.submit", { tasklist: "long", tasks: [{ type: "x" }] });
  assert.equal((await poll).tasks[0].task_id, id);
  const { tasks = [] } = await call("tasks.poll", { tasklist: "long", max_tasks: 1 });
  assert.deepEqual(tasks, []);
});

test("heartbeats carry progress, and tell of a cancel", async () => {
  const task = await taken("beats", { type: "x", heartbeat_timeout_ms: 60_000 });
  const beat = { tasks: [{ task_id: task.task_id, token: task.token, progress: { percent: 40 } }] };
  const { verdicts: [first] } = await call("tasks.heartbeat", beat);
  assert.equal(first.code, "OK");
  assert.ok(!first.cancel_requested);
  assert.ok(first.lease_ms > 0 && first.lease_ms <= 60_000);
  assert.deepEqual((await call("tasks.get", { task_id: task.task_id })).task.progress, { percent: 40 });

  const { verdicts: [cancel] } = await call("tasks.cancel", { task_ids: [task.task_id], reason: "changed my mind" });
  assert.equal(cancel.code, "OK");
  assert.equal((await call("tasks.heartbeat", beat)).verdicts[0].cancel_requested, true);
  await call("tasks.fail", { tasks: [{ task_id: task.task_id, token: task.token, message: "stopped" }] });
  assert.equal((await call("tasks.get", { task_id: task.task_id })).task.state, "cancelled");
});

test("failures are retried, and the old token is stale", async () => {
  const first = await taken("retries", { type: "x", retry: { max_attempts: 2, initial_interval_ms: 10 } });
  const fail = (t) => call("tasks.fail", { tasks: [{ task_id: t.task_id, token: t.token, message: "no", error_type: "Bank" }] });
  assert.equal((await fail(first)).verdicts[0].code, "OK");
  const { tasks: [second] } = await call("tasks.poll", { tasklist: "retries", max_tasks: 1, wait_ms: 20_000 }, 30_000);
  assert.equal(second.attempt, 2);
  assert.equal(second.failures, 1);
  const late = await call("tasks.complete", { tasks: [{ task_id: first.task_id, token: first.token }] });
  assert.equal(late.verdicts[0].code, "STALE");
  assert.equal((await fail(second)).verdicts[0].code, "OK");
  const { task } = await call("tasks.get", { task_id: first.task_id, wait_ms: 10_000 }, 20_000);
  assert.equal(task.state, "dead");
  assert.equal(task.error_type, "Bank");
  assert.equal(kinds(task), "submitted started failed started failed dead");
});

test("tasks are waited for, changed and cancelled, by id and by filter", async () => {
  const tasklist = "crowd";
  const tasks = Array.from({ length: 250 }, (_, i) => ({ type: "x", delay_ms: i < 100 ? 3_600_000 : 0, group: i % 2 ? "odd" : "even" }));
  const ids = (await client.submit({ tasklist, tasks })).results.map(({ task_id: id }) => id);
  const [one] = await client.update([{ task_id: ids[0], priority: 1 }]);
  assert.deepEqual([one.code, one.revision], ["OK", 2]);
  const [stale, missing] = await client.update([{ task_id: ids[0], if_revision: 1, priority: 2 }, { task_id: "0".repeat(26), priority: 2 }]);
  assert.deepEqual([stale.code, stale.revision, missing.code], ["STALE", 2, "NOT_FOUND"]);

  const verdicts = await client.cancel([ids[1], ids[2], ids[1]], "by id");
  assert.deepEqual(verdicts.map(({ task_id: id, code }) => [id, code]), [[ids[1], "OK"], [ids[2], "OK"]]);
  assert.equal((await client.wait(ids[1])).state, "cancelled");
  assert.equal((await client.cancel(["0".repeat(26)]))[0].code, "NOT_FOUND");

  assert.deepEqual(await client.updateAll({ tasklist, group: "odd" }, { tasklist: "other", priority: 5 }, { rate: 2000 }), { found: 124, changed: 124, refused: 0 });
  assert.deepEqual(await client.cancelAll({ tasklist }, { reason: "by filter", rate: 2000 }), { found: 124, changed: 124, refused: 0 });
  const left = [];
  for await (const task of client.tasks({ tasklist: "other", limit: 50 })) left.push(task);
  assert.equal(left.length, 124);
  assert.ok(left.every(({ priority, group, state }) => priority === 5 && group === "odd" && ["waiting", "ready"].includes(state)));
});

test("an update whose answer is lost is made once", async () => {
  const { results: [{ task_id: id }] } = await client.submit({ tasklist: "lost", tasks: [{ type: "x" }] });
  const other = new Client(nc, process.env.YARD_DOMAIN);
  const ask = other.ask.bind(other);
  other.ask = async (...request) => {
    other.ask = ask;
    await ask(...request);
    throw new Error("the answer is lost");
  };
  const [verdict] = await other.update([{ task_id: id, priority: 2 }]);
  assert.deepEqual([verdict.code, verdict.revision], ["OK", 2]);
});

test("a schedule is put, listed, triggered, paused and deleted", async () => {
  const task = { type: "report", tasklist: "reports", payload: { at: "{{run_at}}" } };
  const schedule = { name: "nightly", cron: ["30 2 * * *"], time_zone: "Europe/Berlin", task };
  const { schedule: put } = await call("schedules.put", { schedule });
  assert.equal(put.next_ms.length, 5);
  assert.equal(put.schedule.overlap, "skip");
  await assert.rejects(call("schedules.put", { schedule: { ...schedule, time_zone: "Europe/Nowhere" } }), { code: "INVALID_ARGUMENT", path: "/schedule/time_zone" });
  const { next_ms: next } = await call("schedules.next", { name: "nightly", limit: 1 });
  assert.deepEqual(next, put.next_ms.slice(0, 1));
  const { schedules } = await call("schedules.list", {});
  assert.deepEqual(schedules.map((s) => s.schedule.name), ["nightly"]);

  const { run_at_ms: at } = await call("schedules.trigger", { name: "nightly", request_id: "once" });
  assert.equal((await call("schedules.trigger", { name: "nightly", request_id: "once" })).run_at_ms, at);
  const { tasks: [run] } = await call("tasks.poll", { tasklist: "reports", max_tasks: 1, wait_ms: 20_000 }, 30_000);
  assert.equal(run.headers["yard-schedule"], "nightly");
  assert.equal(Date.parse(run.payload.at), at);
  await call("tasks.complete", { tasks: [{ task_id: run.task_id, token: run.token }] });
  const { schedule: known } = await call("schedules.get", { name: "nightly" });
  assert.deepEqual(known.recent.map((r) => [r.reason, r.task_id]), [["trigger", run.task_id]]);

  assert.equal((await call("schedules.pause", { name: "nightly" })).schedule.next_ms, undefined);
  assert.equal((await call("schedules.resume", { name: "nightly" })).schedule.next_ms.length, 5);
  assert.equal((await call("schedules.delete", { name: "nightly" })).deleted, true);
  await assert.rejects(call("schedules.get", { name: "nightly" }), { code: "NOT_FOUND" });
});

test("events report the end of tasks", async () => {
  const heard = [];
  const listening = client.events((e) => heard.push(e), { kind: "finished", tasklist: "heard" });
  await nc.flush();
  const ids = [];
  while (!heard.length) { // history learns of the setting a moment later
    const { results: [{ task_id: id }] } = await call("tasks.submit", { tasklist: "heard", tasks: [{ type: "x", delay_ms: 60_000 }] });
    ids.push(id);
    await call("tasks.cancel", { task_ids: [id] });
    await call("tasks.get", { task_id: id, wait_ms: 10_000 }, 20_000);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const [{ kind, tasklist, tasks: [task] }] = heard;
  assert.deepEqual([kind, tasklist, task.state], ["finished", "heard", "cancelled"]);
  assert.ok(ids.includes(task.task_id));
  listening.unsubscribe();
});

test("errors come in headers, with their code and the field's path", async () => {
  const refused = (endpoint, request, code, path) =>
    assert.rejects(call(endpoint, request), (e) => {
      assert.ok(e instanceof Refusal, String(e));
      assert.equal(e.code, code);
      assert.equal(e.path, path);
      assert.ok(e.message.length > code.length + 2);
      return true;
    });
  await refused("tasks.submit", { tasks: [] }, "INVALID_ARGUMENT", "/tasks");
  await refused("tasks.submit", { tasklist: "a", tasks: [{ type: "x", delay_ms: -1 }] }, "INVALID_ARGUMENT", "/tasks/0/delay_ms");
  await refused("tasks.submit", { tasklist: "a", tasks: [{ type: "x", colour: "red" }] }, "INVALID_ARGUMENT", "/tasks/0/colour");
  await refused("tasks.get", { task_id: "00000000000000000000000000" }, "NOT_FOUND", undefined);
});

// On a sealed cluster the server itself refuses both.
const sealed = process.env.NATS_NKEY ? "only its own domain is open to it" : false;

test("a domain that was never made", { skip: sealed }, async () => {
  await assert.rejects(new Client(nc, "no-such-domain").ask("tasks.submit", { tasklist: "a", tasks: [{ type: "x" }] }), { code: "NOT_FOUND" });
});

test("the API describes itself", { skip: sealed }, async () => {
  // Every process answers for itself; the one with the API lists its endpoints.
  let submit;
  for await (const m of await nc.requestMany("$SRV.INFO.yard-frontend", "", { maxWait: 10_000, strategy: "timer" })) {
    submit = m.json().endpoints?.find((e) => e.subject === "yard.v1.*.tasks.submit");
    if (submit) break;
  }
  assert.ok(JSON.parse(submit.metadata.request_schema).properties.tasks);
});
