// Turns values of the agent into texts for people.

// Control characters, and those that change the direction of the text around them.
const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

let skew = 0; // of the node's clock against the browser's, in milliseconds

export function setNodeTime(date) {
  const time = Date.parse(date);
  if (Number.isFinite(time)) skew = time - Date.now();
}

/** A text that was chosen by whoever started a program. */
export function clean(text) {
  return typeof text === "string" ? text.replace(UNPRINTABLE, "\u25a1") : "";
}

export function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function list(value) {
  return Array.isArray(value) ? value : [];
}

function digits(value) {
  return value >= 100 || Math.abs(value - Math.round(value)) < 0.05
    ? value.toFixed(0)
    : value.toFixed(1);
}

/** The items of a list that are objects: another node's agent may answer anything. */
export function objects(value) {
  return list(value)
    .filter((one) => one !== null && typeof one === "object")
    .slice(0, 1000);
}

/** 85899345920 is "80 GiB". */
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${digits(value)}\u00a0${units[unit]}`;
}

export function percent(ratio) {
  return `${Math.round(ratio * 100)}\u00a0%`;
}

export function watts(value) {
  return value >= 1000 ? `${(value / 1000).toFixed(2)}\u00a0kW` : `${Math.round(value)}\u00a0W`;
}

function duration(seconds) {
  if (seconds < 60) return "less than a minute";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600)
    return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

/** How long ago a time of the node was: "2 h 5 min". */
export function age(time) {
  const at = Date.parse(time);
  return Number.isFinite(at) ? duration(Math.max(0, (Date.now() + skew - at) / 1000)) : "";
}

/** A time of the node in the browser's zone: "14:03", with the date where it is not today. */
export function moment(time) {
  const at = new Date(Date.parse(time) - skew);
  if (Number.isNaN(at.getTime())) return "";
  const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return at.toDateString() === new Date().toDateString()
    ? clock
    : `${at.toLocaleDateString()} ${clock}`;
}

export function count(amount, singular) {
  return `${amount} ${singular}${amount === 1 ? "" : "s"}`;
}

/** What the devices of a node are called; earlier agents do not say of which kind theirs are. */
export function wordFor(devices) {
  return devices.length > 0 && devices.every((device) => (device.kind ?? "GPU") === "GPU")
    ? "GPU"
    : "device";
}

/** "GPU 3", of a part "GPU 0:1", or the id where a device has neither. */
export function nameOf(device) {
  const word = wordFor([device]);
  const place = number(device.index) ?? clean(device.number ?? "");
  return place === "" ? clean(device.id) : `${word === "GPU" ? word : "Device"} ${place}`;
}
