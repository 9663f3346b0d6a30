// All that a client of Yardmaster needs beside NATS: one function, and on a sealed cluster
// how to log in.
import { readFileSync } from "node:fs";
import { nkeyAuthenticator } from "@nats-io/transport-node";

// login are the options of a connection: with YARD_NKEY, the path of a seed, it is that user, whose
// answers come below YARD_INBOX_PREFIX.
export function login({ YARD_NKEY, YARD_INBOX_PREFIX } = process.env) {
  if (!YARD_NKEY) return {};
  const seed = new TextEncoder().encode(readFileSync(YARD_NKEY, "utf8").trim());
  return { authenticator: nkeyAuthenticator(seed), inboxPrefix: YARD_INBOX_PREFIX };
}

// Refusal is an error that the engine answered with.
export class Refusal extends Error {
  constructor(code, description, body) {
    super(`${code}: ${description}`);
    this.code = code;
    // The body tells the same and more, as JSON: path, detail, retry_after_ms.
    Object.assign(this, { path: body.path, detail: body.detail, retryAfterMs: body.retry_after_ms });
  }
}

// domain returns a function that calls an endpoint of a domain, such as
// call("tasks.submit", {…}), and resolves to its answer.
export function domain(nc, name) {
  return async function call(endpoint, request = {}, timeout = 10_000) {
    const answer = await nc.request(`yard.v1.${name}.${endpoint}`, JSON.stringify(request), { timeout });
    const code = answer.headers?.get("Nats-Service-Error-Code");
    if (code) {
      throw new Refusal(code, answer.headers.get("Nats-Service-Error"), answer.json());
    }
    return answer.json();
  };
}
