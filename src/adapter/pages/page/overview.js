// The table of several nodes.
import { badge } from "./devices.js";
import { make, tableBody, tableHead, tableRow } from "./dom.js";
import { clean, count, percent, watts } from "./format.js";
import { UNKNOWN, nodeState, totalsOf } from "./totals.js";

/** The overview of several nodes: [{node, name, state, problem}]. */
export function overview(nodes) {
  const heads = ["Node", "State", "Free", "Queue", "Use", "Power"];
  const row = ({ node, name, state, problem }) => {
    const totals = state && totalsOf(state);
    const id = `node-${node ?? "own"}`;
    const jump = () => {
      document.getElementById(id).open = true;
    };
    const health = problem
      ? [badge("gone", "Does not answer"), make("span", { class: "reason" }, clean(problem))]
      : state
        ? nodeState(state)
        : badge("unknown", "Asking…");
    return tableRow(heads, [
      make("a", { href: `#${id}`, "data-focus": id, onclick: jump }, clean(state?.node) || name),
      health,
      ...(totals
        ? [
            `${totals.free} of ${count(totals.slots, totals.shared ? "share" : totals.word)}`,
            String(totals.queued),
            totals.use === undefined ? UNKNOWN : percent(totals.use),
            totals.power === undefined ? UNKNOWN : watts(totals.power),
          ]
        : [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]),
    ]);
  };
  return [
    make("h2", {}, "Nodes"),
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Nodes" },
      make(
        "table",
        { class: "plain", role: "table", "aria-label": "Nodes" },
        tableHead(heads),
        tableBody(nodes.map(row)),
      ),
    ),
  ];
}
