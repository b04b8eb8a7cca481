// A node's part of the page: summary, problems, devices, queue.
import { badge, deviceTable } from "./devices.js";
import { showList } from "./details.js";
import { make, tableBody, tableHead, update } from "./dom.js";
import { bytes, clean, count, number, objects, percent, watts, wordFor } from "./format.js";
import { holderTable, runTable } from "./holders.js";
import { UNKNOWN, nodeState, problemsOf, totalsOf } from "./totals.js";

function tile(name, value, remark) {
  return make(
    "div",
    { class: "tile" },
    make("dt", {}, name),
    make("dd", {}, value, remark && make("span", { class: "remark" }, remark)),
  );
}

function summary(state) {
  const totals = totalsOf(state);
  const what = totals.shared ? "share" : totals.word;
  return make(
    "dl",
    { class: "summary" },
    tile("Health", nodeState(state), `of ${count(totals.devices, totals.word)}`),
    tile("Free", String(totals.free), `of ${count(totals.slots, what)} offered`),
    tile(
      "Queue",
      String(totals.queued),
      totals.queued === 0
        ? "nothing waits"
        : `${totals.queued === 1 ? "run waits" : "runs wait"} for ${totals.word}s`,
    ),
    tile("Use", totals.use === undefined ? UNKNOWN : percent(totals.use), "mean of now"),
    tile(
      "Memory",
      totals.memory === undefined ? UNKNOWN : bytes(totals.memory),
      `of ${bytes(totals.memoryAll)}`,
    ),
    tile(
      "Power",
      totals.power === undefined ? UNKNOWN : watts(totals.power),
      totals.devices === 1 ? "now" : `of all ${totals.word}s`,
    ),
  );
}

function problems(state) {
  const all = problemsOf(state);
  const drivers = objects(state.vendors)
    .filter((vendor) => vendor.reason)
    .map((vendor) => ({ title: `${clean(vendor.vendor)} driver`, text: clean(vendor.reason) }));
  const shown = [
    ...all,
    ...drivers.filter((one) => !all.some((other) => other.text.includes(one.text))),
  ];
  return shown.length === 0
    ? []
    : make(
        "ul",
        { class: "problems", "aria-label": "Problems" },
        shown.map((problem) =>
          make("li", {}, make("strong", {}, problem.title), ": ", problem.text),
        ),
      );
}

function queue(state, node, level) {
  const runs = objects(state.queue);
  const all = number(state.queueLength) ?? runs.length;
  if (all === 0) return [];
  const table = runTable(wordFor(objects(state.devices)));
  const show = () =>
    showList({ title: "Queued runs", document: "queue", key: "queue", node, table });
  return [
    make(`h${level}`, {}, "Queue ", make("span", { class: "remark inline" }, count(all, "run"))),
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Queue" },
      make(
        "table",
        { class: "plain", role: "table", "aria-label": "Queue" },
        tableHead(table.heads),
        tableBody(runs.slice(0, 10).map((run, index) => table.row(run, index + 1))),
      ),
    ),
    all > runs.length
      ? make(
          "button",
          { type: "button", "data-focus": "queue", onclick: show },
          `Show all ${all} queued runs`,
        )
      : null,
  ];
}

function removed(state, node) {
  const amount = number(state.removedCount) ?? 0;
  if (amount === 0) return [];
  const show = () =>
    showList({
      title: "Holders of devices that no longer exist",
      document: "holders",
      key: "holders",
      node,
      parameters: { device: "" },
      table: holderTable(objects(state.removed).some((holder) => holder.command || holder.pids)),
    });
  return make(
    "p",
    {},
    `${count(amount, "holder")} of devices that no longer exist. `,
    make("button", { type: "button", "data-focus": "removed", onclick: show }, "Show them"),
  );
}

/**
 * The part of one node. `node`: the number of another node, or undefined; `name`: until it is
 * known; `single`: the page shows no other.
 */
export function nodeSection(node, name, single) {
  const level = single ? 2 : 3;
  const parts = {
    title: make("span", {}, name),
    badge: make("span"),
    problem: make("div"),
    summary: make("div"),
    problems: make("div"),
    removed: make("div"),
    queue: make("div", { class: "queue" }),
  };
  const table = deviceTable(node);
  const heading = make(`h${level}`, { class: single ? "hidden" : undefined }, "Devices");
  const inside = [
    parts.problem,
    parts.summary,
    parts.problems,
    heading,
    make("div", { class: "wide" }, table.element),
    parts.removed,
    parts.queue,
  ];
  const element = single
    ? make("section", { "aria-label": "This node" }, inside)
    : make(
        "details",
        { class: "node", id: `node-${node ?? "own"}`, open: node === undefined },
        make("summary", {}, make("h2", {}, parts.title, " "), parts.badge),
        inside,
      );
  return {
    element,
    get open() {
      return single || element.open;
    },
    /** `histories`: by device. */
    show(state, histories) {
      const minute = Math.floor(Date.now() / 60_000);
      element.classList.remove("stale");
      update(parts.title, state.node, () => clean(state.node) || name);
      update(parts.badge, [state.devices, state.conditions], () => nodeState(state));
      update(parts.problem, "", () => []);
      if (!this.open) return;
      const devices = objects(state.devices);
      update(parts.summary, state, () => summary(state));
      update(parts.problems, [state.conditions, state.vendors, state.configurationProblem], () =>
        problems(state),
      );
      update(parts.removed, state.removedCount, () => removed(state, node));
      update(parts.queue, [state.queue, state.queueLength, minute], () =>
        queue(state, node, level),
      );
      heading.hidden = table.element.hidden = devices.length === 0;
      table.show(devices, histories);
    },
    /** For this reason, there is nothing newer to show than of this time ("14:03:21"; "": never). */
    fail(reason, since) {
      element.classList.add("stale");
      update(parts.badge, reason, () => badge("gone", "Does not answer"));
      update(parts.problem, [reason, since], () =>
        make(
          "p",
          { class: "banner" },
          since === ""
            ? `No answer: ${clean(reason)}.`
            : `No answer since ${since}: ${clean(reason)}. What is shown below is from before.`,
        ),
      );
    },
  };
}
