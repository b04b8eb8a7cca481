// Reads documents of the agent; an unchanged document is not transferred again.
import { setNodeTime } from "./format.js";

const TIMEOUT = 10_000;
const kept = new Map(); // by address: {tag, value}

/** Why a document is not available; `status` 0: the agent did not answer. */
class Unavailable extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** {value, changed}; `keep`: the address will be read again. Throws Unavailable. */
export async function read(address, keep = true) {
  const before = kept.get(address);
  const headers = before ? { "If-None-Match": before.tag } : {};
  let answer;
  let text;
  try {
    // By its origin: the page may have been opened by an address with a password in it, which is
    // refused here.
    answer = await fetch(location.origin + address, {
      headers,
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT),
    });
    text = await answer.text();
  } catch {
    throw new Unavailable(0, "the agent does not answer");
  }
  setNodeTime(answer.headers.get("Date"));
  if (answer.status === 304 && before) return { value: before.value, changed: false };
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (answer.ok && value !== null && typeof value === "object") {
    if (keep) kept.set(address, { tag: answer.headers.get("ETag") ?? "", value });
    return { value, changed: true };
  }
  const reason = typeof value?.problem === "string" ? value.problem : text.slice(0, 500);
  throw new Unavailable(answer.status, answer.ok ? "the answer is not an agent's" : reason);
}

/** The address of a document; `node`: the number of another node, or undefined. */
export function address(document, node, parameters = {}) {
  const query = new URLSearchParams(parameters);
  if (node !== undefined) query.set("node", node);
  return `/ui/${document}${query.size > 0 ? `?${query}` : ""}`;
}
