// The table of a node's devices: health, the last hour, holders. A cell is drawn again only if it
// changed.
import { chart } from "./chart.js";
import { showList } from "./details.js";
import { make, replace, tableBody, tableHead, tableRow, update } from "./dom.js";
import {
  age,
  bytes,
  clean,
  count,
  list,
  moment,
  nameOf,
  number,
  objects,
  percent,
  watts,
} from "./format.js";
import { holderItem, holderTable } from "./holders.js";

const HEADS = ["Device", "Health", "Use", "Memory", "Power", "Held by"];
const STATES = {
  healthy: "Healthy",
  unhealthy: "Unhealthy",
  unknown: "Not read yet",
  gone: "Gone",
};
const SIGNS = { healthy: "✓", unhealthy: "✕", unknown: "?", gone: "–" };
const MEBIBYTE = 1024 * 1024;

export function stateOf(device) {
  return Object.hasOwn(STATES, device.health?.state) ? device.health.state : "unknown";
}

/** A state as text with a sign; the colour only repeats it. */
export function badge(state, text) {
  return make(
    "span",
    { class: `badge ${state}` },
    make("span", { "aria-hidden": "true" }, SIGNS[state] ?? "!"),
    ` ${text ?? STATES[state]}`,
  );
}

/** Why a device is not healthy or not offered, and what it warns of, in sentences. */
export function reasonsOf(device) {
  return [
    device.health?.reason,
    device.probationUntil && `on probation until ${moment(device.probationUntil)}`,
    device.withheld &&
      device.withheld !== device.health?.reason &&
      `${device.resource ? "not as configured" : "not offered"}: ${device.withheld}`,
    device.warning,
    device.telemetryProblem && `values are missing: ${device.telemetryProblem}`,
  ]
    .filter(Boolean)
    .map(clean);
}

/** Who gets the device, and how it is divided. */
function offerOf(device) {
  const owner =
    { kubelet: "for pods", local: "for penstock run" }[device.allocator] ?? "not offered";
  const shares = number(device.shares) ?? 1;
  if (shares <= 1 && (device.sharing ?? "none") === "none") return [owner];
  const free = `${number(device.free) ?? 0} of ${count(shares, "share")} free`;
  return [owner, `${clean(device.sharing)}: ${free}`];
}

function deviceCell(device) {
  return [
    make("span", { class: "name" }, nameOf(device)),
    make("span", { class: "remark" }, clean(device.model)),
    offerOf(device).map((remark) => make("span", { class: "remark" }, remark)),
  ];
}

function healthCell(device) {
  const state = stateOf(device);
  return [
    badge(state),
    state !== "healthy" &&
      device.health?.since &&
      make("span", { class: "remark" }, `for ${age(device.health.since)}`),
    reasonsOf(device).map((reason) => make("span", { class: "reason" }, reason)),
  ]
    .flat()
    .filter(Boolean);
}

/** A chart with its newest value as text. */
function valueCell(values, now, most, what, show, extra) {
  return [
    chart(values, now, most, what, show),
    make(
      "span",
      { class: "value" },
      now === undefined ? "not known" : show(now),
      extra && make("span", { class: "remark inline" }, ` ${extra}`),
    ),
  ];
}

function cells(device, history) {
  const use = number(device.utilization);
  const memory = number(device.memoryUsedBytes);
  const power = number(device.powerWatts);
  const limit = number(device.powerLimitWatts);
  const all = number(device.memoryBytes) ?? 0;
  const heat = number(device.temperatureCelsius);
  const inBytes = (mebibytes) => bytes(mebibytes * MEBIBYTE);
  return [
    valueCell(
      list(history?.utilization),
      use === undefined ? undefined : use * 100,
      100,
      "Use",
      (value) => percent(value / 100),
    ),
    valueCell(
      list(history?.memory),
      memory === undefined ? undefined : memory / MEBIBYTE,
      all / MEBIBYTE,
      "Memory used",
      inBytes,
      all > 0 && `of ${bytes(all)}`,
    ),
    valueCell(
      list(history?.power),
      power,
      limit ?? 0,
      "Power",
      watts,
      [
        limit !== undefined && `of ${watts(limit)}`,
        heat !== undefined && `${Math.round(heat)}\u00a0°C`,
      ]
        .filter(Boolean)
        .join(", "),
    ),
  ];
}

function holdersCell(device, node) {
  const holders = objects(device.holders);
  const amount = number(device.holderCount) ?? holders.length;
  if (amount === 0) return [make("span", { class: "remark" }, "no one")];
  const show = () =>
    showList({
      title: `Holders of ${nameOf(device)}`,
      document: "holders",
      key: "holders",
      node,
      parameters: { device: device.id },
      table: holderTable(holders.some((holder) => holder.command || holder.pids)),
    });
  return [
    make(
      "ul",
      { class: "holders" },
      holders.slice(0, 3).map((holder) => holderItem(holder, amount > 2)),
    ),
    make(
      "button",
      { type: "button", class: "link", "data-focus": "holders", onclick: show },
      amount > holders.length ? `Show all ${amount}` : "Details",
      make("span", { class: "hidden" }, ` of the holders of ${nameOf(device)}`),
    ),
  ];
}

/** A table that `show(devices, histories)` updates; `node`: as in source.js. */
export function deviceTable(node) {
  const rows = new Map(); // by id
  const body = tableBody();
  const table = make(
    "table",
    { class: "devices", role: "table", "aria-label": "Devices" },
    tableHead(HEADS),
    body,
  );
  return {
    element: table,
    show(devices, histories) {
      const before = [...rows.keys()];
      for (const device of devices) {
        const id = String(device.id);
        let row = rows.get(id);
        if (row === undefined) {
          row = tableRow(HEADS, []);
          rows.set(id, row);
        }
        row.className = stateOf(device);
        const minute = Math.floor(Date.now() / 60_000); // ages are shown in minutes
        update(row.children[0], device, () => deviceCell(device));
        update(row.children[1], [device, minute], () => healthCell(device));
        update(
          row.children[2],
          [device.utilization, histories[id]?.utilization],
          () => cells(device, histories[id])[0],
        );
        update(
          row.children[3],
          [device.memoryUsedBytes, device.memoryBytes, histories[id]?.memory],
          () => cells(device, histories[id])[1],
        );
        update(
          row.children[4],
          [
            device.powerWatts,
            device.powerLimitWatts,
            device.temperatureCelsius,
            histories[id]?.power,
          ],
          () => cells(device, histories[id])[2],
        );
        update(row.children[5], [device.holders, device.holderCount, minute], () =>
          holdersCell(device, node),
        );
      }
      const ids = devices.map((device) => String(device.id));
      for (const id of before) if (!ids.includes(id)) rows.delete(id);
      if (ids.join("\n") !== before.join("\n"))
        replace(
          body,
          ids.map((id) => rows.get(id)),
        );
    },
  };
}
