// A worker for tasks of type email.send: node mailer.mjs DOMAIN TASKLIST. SIGTERM or Ctrl-C drains it.
import { open } from "./yardmaster.mjs";
import { work } from "./worker.mjs";

const [domain = "shop", tasklist = "mail"] = process.argv.slice(2);
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort()).once("SIGINT", () => stop.abort());

const client = await open(domain);
console.log(`waiting for tasks of ${tasklist} in ${domain}`);
await work(client, tasklist, {
  "email.send": async ({ to, subject }) => {
    console.log(`${subject} for ${to}`);
    return { message_id: `<${to}>` };
  },
}, { stop: stop.signal });
await client.close();
