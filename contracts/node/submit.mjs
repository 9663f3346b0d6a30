// Submits a task and waits for its result: node submit.mjs DOMAIN TASKLIST TYPE PAYLOAD
import { open } from "./yardmaster.mjs";

const [domain = "shop", tasklist = "mail", type = "email.send", payload = '{"to":"ann@example.com","subject":"Hello"}'] = process.argv.slice(2);
const client = await open(domain);
const { task } = await client.submit({ tasklist, tasks: [{ type, payload: JSON.parse(payload) }], wait: true });
console.log(task?.task_id, task?.state, JSON.stringify(task?.result));
await client.close();
