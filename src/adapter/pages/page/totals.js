// Sums up a node: numbers about its devices, its state in a word, its problems, what changed.
import { badge, reasonsOf, stateOf } from "./devices.js";
import { clean, moment, nameOf, number, objects, wordFor } from "./format.js";

export const UNKNOWN = "not\u00a0known";
const sum = (values) => values.reduce((total, value) => total + value, 0);
const known = (devices, key) =>
  devices.map((device) => number(device[key])).filter((value) => value !== undefined);
const isShared = (device) => number(device.shares) > 1;

/** Numbers about a node's devices. */
export function totalsOf(state) {
  const devices = objects(state.devices);
  const use = known(devices, "utilization");
  const memory = known(devices, "memoryUsedBytes");
  const power = known(devices, "powerWatts");
  const offered = devices.filter((device) => ["kubelet", "local"].includes(device.allocator));
  return {
    devices: devices.length,
    word: wordFor(devices),
    healthy: devices.filter((device) => stateOf(device) === "healthy").length,
    shared: offered.some(isShared),
    slots: sum(known(offered, "shares")),
    free: sum(known(offered, "free")),
    queued: number(state.queueLength) ?? 0,
    use: use.length > 0 ? sum(use) / use.length : undefined,
    memory: memory.length > 0 ? sum(memory) : undefined,
    memoryAll: sum(known(devices, "memoryBytes")),
    power: power.length > 0 ? sum(power) : undefined,
  };
}

/** What keeps a node from working as configured, as {title, text}. */
export function problemsOf(state) {
  const problems = [];
  for (const condition of objects(state.conditions))
    if (condition.status !== true && condition.type !== "DevicesHealthy")
      problems.push({
        title: clean(condition.type).replace(/([a-z])([A-Z])/g, "$1 $2"),
        text: [
          clean(condition.message) || clean(condition.reason),
          condition.since && `since ${moment(condition.since)}`,
        ]
          .filter(Boolean)
          .join(", "),
      });
  if (state.configurationProblem)
    problems.push({ title: "Configuration not applied", text: clean(state.configurationProblem) });
  return problems;
}

/** The state of a node in a word or two. */
export function nodeState(state) {
  const totals = totalsOf(state);
  if (totals.devices === 0) return badge("unknown", "No devices");
  if (totals.healthy < totals.devices)
    return badge("unhealthy", `${totals.devices - totals.healthy} not healthy`);
  return problemsOf(state).length > 0
    ? badge("attention", "Needs attention")
    : badge("healthy", "All healthy");
}

/** What a screen reader announces after a change: healths that differ from those before. */
export function changesOf(before, state) {
  const changes = [];
  for (const device of objects(state.devices)) {
    const now = stateOf(device);
    const last = before.get(device.id);
    if (last !== undefined && last !== now)
      changes.push(
        `${nameOf(device)} of ${clean(state.node)} is ${now === "unknown" ? "not read" : now}` +
          (now === "healthy" ? "." : `: ${reasonsOf(device)[0] ?? "no reason known"}.`),
      );
    before.set(device.id, now);
  }
  return changes;
}
