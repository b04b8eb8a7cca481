// Describes holders of devices and queued runs.
import { make, tableRow } from "./dom.js";
import { age, bytes, clean, count, list, moment, number } from "./format.js";

const KINDS = { pod: "pod", run: "run", outside: "outside process", graphics: "graphics" };
const kindOf = (holder) => (Object.hasOwn(KINDS, holder.kind) ? KINDS[holder.kind] : "holder");

/** "ml/train-0", "eva". */
function titleOf(holder) {
  if (holder.pod) return `${clean(holder.namespace)}/${clean(holder.pod)}`;
  return (
    clean(holder.user) ||
    (holder.kind === "pod" ? "a pod whose name is not known yet" : "unknown user")
  );
}

function remarksOf(holder) {
  return [
    holder.container && `container ${clean(holder.container)}`,
    holder.pod && holder.user && `user ${clean(holder.user)}`,
    number(holder.slots) > 1 && count(holder.slots, "share"),
    holder.state === "handed" && "no process yet",
    holder.since && `for ${age(holder.since)}`,
    holder.note && clean(holder.note),
  ]
    .filter(Boolean)
    .join(" · ");
}

const command = (item) =>
  item.command ? make("bdi", { class: "command" }, clean(item.command)) : null;

/** One holder on few lines; `brief`: on one. */
export function holderItem(holder, brief) {
  return make(
    "li",
    {},
    make("span", { class: "kind" }, kindOf(holder)),
    " ",
    make("bdi", { class: "who" }, titleOf(holder)),
    brief ? null : [command(holder), make("span", { class: "remark" }, remarksOf(holder))],
  );
}

/** The table of all holders; `processes`: the reader may see process ids and command lines. */
export function holderTable(processes) {
  const heads = ["Holder", "Kind", "Details", ...(processes ? ["Process ids", "Command"] : [])];
  return {
    heads,
    row: (holder) =>
      tableRow(heads, [
        make("bdi", { class: "who" }, titleOf(holder)),
        kindOf(holder),
        remarksOf(holder),
        list(holder.pids).filter(Number.isInteger).join(", "),
        command(holder),
      ]),
  };
}

function requestOf(run, word) {
  const amount = number(run.count) ?? 1;
  const what =
    number(run.share) > 1
      ? `one of ${run.share} shares of ${amount === 1 ? `a ${word}` : `${amount} ${word}s`}`
      : count(amount, word);
  return [
    what,
    run.profile && `profile ${clean(run.profile)}`,
    number(run.minMemory) && `at least ${bytes(run.minMemory)}`,
    run.model && `model ${clean(run.model)}`,
    run.devices && `devices ${clean(run.devices)}`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** The table of queued runs; `word`: what the devices are called. */
export function runTable(word) {
  const heads = ["Place", "User", "Request", "Waits", "Expected start", "Reason"];
  return {
    heads,
    row: (run, place) =>
      tableRow(
        heads,
        [
          String(place),
          [make("bdi", { class: "who" }, clean(run.user) || "unknown user"), command(run)],
          requestOf(run, word),
          age(run.since),
          run.expectedStart ? moment(run.expectedStart) : "not known",
          clean(run.reason),
        ],
        1,
      ),
  };
}
