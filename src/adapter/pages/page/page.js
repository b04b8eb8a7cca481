// Keeps the page up to date while it is visible: asks the agent for its state every few seconds,
// waits longer while it does not answer, and loads the page again after the agent was upgraded.
import { update } from "./dom.js";
import { clean, list } from "./format.js";
import { nodeSection } from "./nodes.js";
import { overview } from "./overview.js";
import { address, read } from "./source.js";
import { changesOf } from "./totals.js";

const EVERY = 5_000,
  HISTORY_EVERY = 30_000,
  LONGEST = 30_000;
const BUILD = document.querySelector("meta[name=penstock-build]").content;
const byId = (id) => document.getElementById(id);
const clock = () => new Date().toLocaleTimeString();

const healths = []; // by node: the last health of each device
// [{node, name, section, state, histories, historyAt, problem, answered, reading}]; the first is this one.
let nodes = [];
let pause = EVERY;
let timer = 0;
let running = false;
let drawn = false;

function setBanner(text) {
  const banner = byId("banner");
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = text === "";
}

/** The page's files are those of another version of the agent. */
function loadAgain(build) {
  try {
    if (sessionStorage.getItem("penstock-build") !== build) {
      sessionStorage.setItem("penstock-build", build);
      return location.reload();
    }
  } catch {
    // Without storage, loading again might never end.
  }
  setBanner("The agent has another version than this page. Load the page again.");
}

function arrange(others) {
  const names = others.map(clean);
  if (
    nodes.length === names.length + 1 &&
    names.every((name, index) => nodes[index + 1].name === name)
  )
    return;
  const single = names.length === 0;
  const make = (node, name) => ({
    node,
    name,
    section: nodeSection(node, name, single),
    histories: {},
    historyAt: -HISTORY_EVERY,
    answered: "",
  });
  const own = make(undefined, "This node");
  own.state = nodes[0]?.state;
  nodes = [own, ...names.map((name, index) => make(index, name))];
  byId("nodes").replaceChildren(...nodes.map((one) => one.section.element));
  for (const one of nodes)
    one.section.element.addEventListener("toggle", () => one.section.open && refresh(one));
}

/** Reads what is shown of one node, and shows it; of this one, the state has been read. */
async function refresh(one) {
  if (one.reading) return;
  one.reading = true;
  try {
    if (one !== nodes[0]) {
      one.state = (await read(address("state", one.node))).value;
      one.answered = clock();
    }
    one.problem = undefined;
    if (one.section.open && performance.now() - one.historyAt >= HISTORY_EVERY) {
      const history = await read(address("history", one.node));
      one.histories = history.value.devices ?? {};
      one.historyAt = performance.now();
    }
  } catch (error) {
    one.problem = error.message;
  }
  one.reading = false;
  if (nodes.includes(one)) draw();
}

function announce(changes) {
  if (changes.length > 0) byId("announcements").textContent = changes.slice(0, 5).join(" ");
}

function draw() {
  const changes = [];
  nodes.forEach((one, index) => {
    healths[index] ??= new Map();
    try {
      if (one.problem === undefined && one.state !== undefined) {
        one.section.show(one.state, one.histories);
        changes.push(...changesOf(healths[index], one.state));
      }
    } catch {
      // One node's answer must not keep the others from being shown.
      one.problem = "its answer is not an agent's";
      one.state = undefined;
    }
    if (one.problem !== undefined) one.section.fail(one.problem, one.answered);
  });
  announce(changes);
  update(
    byId("overview"),
    nodes.length > 1 && nodes.map(({ name, state, problem }) => [name, state, problem]),
    () => (nodes.length > 1 ? overview(nodes) : []),
  );
  const own = nodes[0].state;
  byId("node").textContent = clean(own?.node);
  document.title = `${clean(own?.node)} – Penstock`;
  byId("version").textContent = `Penstock ${clean(own?.version)}`;
}

async function look() {
  const answer = await read(address("state")).catch((error) => error);
  if (answer instanceof Error) {
    pause = Math.min(pause * 2, LONGEST);
    const since = nodes[0]?.answered;
    setBanner(
      answer.status === 0
        ? `The agent does not answer${since ? ` since ${since}` : ""}; trying again. It may be restarting.`
        : `The agent refuses to show its state (${answer.status}): ${clean(answer.message)}`,
    );
    byId("live").textContent = "Not connected";
    document.body.classList.add("stale");
    return;
  }
  const state = answer.value;
  if (state.build !== BUILD) return loadAgain(String(state.build));
  pause = EVERY;
  setBanner("");
  document.body.classList.remove("stale");
  arrange(list(state.nodes).filter((name) => typeof name === "string"));
  nodes[0].state = state;
  nodes[0].answered = clock();
  draw(); // the state at once, the history and the other nodes when they arrive
  if (!drawn) performance.mark("penstock-drawn"); // for measurements
  drawn = true;
  nodes.slice(1).forEach(refresh); // one that takes long does not delay the others
  await refresh(nodes[0]);
  byId("live").textContent = `Live, as of ${clock()}`;
}

async function run() {
  clearTimeout(timer);
  if (running || document.hidden) return;
  running = true;
  try {
    await look();
  } finally {
    running = false;
    if (!document.hidden) timer = setTimeout(run, pause * (0.9 + 0.2 * Math.random()));
  }
}

document.addEventListener("visibilitychange", run);
addEventListener("online", run);
run();
