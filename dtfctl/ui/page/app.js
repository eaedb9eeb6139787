// The frame: which cluster and which view are shown (the address after # says so), and the stream of its snapshot.

import { act, get, stream } from "./api.js";
import { delayed, el, framed, mark, replace, spelled, toast, write } from "./dom.js";
import * as format from "./format.js";
import { confirmAction } from "./actions.js";
import * as overview from "./overview.js";
import * as training from "./training.js";
import * as logs from "./logs.js";
import * as life from "./life.js";
import * as parameters from "./parameters.js";
import * as step from "./step.js";

const VIEWS = { overview, training, logs, life, parameters, step };
const TITLES = {
  overview: "Overview", training: "Training", logs: "Logs", life: "Life", parameters: "Parameters", step: "Step",
};
const LIST_MS = 3000;
const RETRY_MS = 1500;
const SILENT_MS = 12000; // the server says something every four seconds
const OLD_S = 10;

const $ = (id) => document.getElementById(id);

/** What the views know: the chosen cluster's last snapshot, and the ways to elsewhere. */
const context = {
  name: "", clusters: [], isReadOnly: true, cluster: null, tasks: new Map(), events: [], skewS: 0,
  go, now: () => Date.now() / 1000 + context.skewS, isDark, act: confirm,
};
let shown = null; // {name, view, close, update}
let watching = null;

// -- where we are

function place() {
  let words = [];
  try { words = location.hash.slice(1).split("/").map(decodeURIComponent); } catch { /* not an address of ours */ }
  const [name, view, query] = words;
  return { name: name || "", view: view in VIEWS ? view : "overview", query: new URLSearchParams(query || "") };
}

function go(view, query = {}, name = context.name) {
  const words = new URLSearchParams(query).toString();
  const hash = [name, view, ...(words ? [words] : [])].map(encodeURIComponent).join("/");
  if (location.hash === `#${hash}`) route();
  else location.hash = hash;
}

function route() {
  const { name, view, query } = place();
  if (!name) {
    if (context.clusters.length) go("overview", {}, context.chosen || context.clusters[0].name);
    else empty();
    return;
  }
  if (name !== context.name || watching === null) watch(name);
  shown?.close?.();
  const room = el(`div.view.${view}`, { role: "tabpanel", "aria-label": TITLES[view] });
  replace($("view"), room);
  shown = { name, view, ...VIEWS[view].show(room, context, query) };
  tabs(view);
  list();
  reveal();
  if (context.cluster) shown.update?.(null);
}

/** Narrow windows have a row of clusters and one of tabs that are wider than they are: the chosen ones come into sight. */
function reveal() {
  for (const selector of [".cluster[aria-current]", ".tab[aria-selected=true]"])
    document.querySelector(selector)?.scrollIntoView({ block: "nearest", inline: "center" });
}

function tabs(view) {
  replace($("tabs"), ...Object.keys(VIEWS).map((each, index) => el("button.tab", {
    type: "button", role: "tab", id: `tab-${each}`, "aria-selected": String(each === view), title: `Key ${index + 1}`,
    tabindex: each === view ? "0" : "-1", onclick: () => go(each),
  }, TITLES[each])));
}

// -- the clusters

async function poll() {
  try {
    const answer = await get("clusters");
    const isFirst = !context.isListed;
    Object.assign(context, { clusters: answer.clusters, chosen: answer.chosen, isReadOnly: answer.isReadOnly });
    context.skewS = answer.now - Date.now() / 1000;
    context.isListed = true;
    list();
    if (isFirst) route();
    else if (!place().name && context.clusters.length) route();
  } catch (error) {
    if (!context.cluster) connection(noAnswer(error));
  }
  setTimeout(poll, LIST_MS);
}

const entries = new Map();

function list() {
  const nav = $("clusters");
  const names = new Set(context.clusters.map((each) => each.name));
  for (const [name, entry] of entries) if (!names.has(name)) { entry.link.remove(); entries.delete(name); }
  let before = null;
  for (const cluster of context.clusters) {
    let entry = entries.get(cluster.name);
    if (!entry) {
      const parts = { dot: el("span.dot"), name: el("span.name"), about: el("span.about") };
      const link = el("a.cluster", { href: `#${encodeURIComponent(cluster.name)}/overview` },
        parts.dot, parts.name, parts.about);
      entry = { link, ...parts };
      entries.set(cluster.name, entry);
      if (cluster.name === context.name) setTimeout(reveal);
    }
    mark(entry.dot, "state", cluster.state);
    write(entry.name, cluster.name);
    const ready = cluster.isOver ? format.age(context.now() - cluster.startedAt) + " ago" : `${cluster.ready}/${cluster.tasks} ready`;
    write(entry.about, cluster.startedAt ? `${cluster.state} · ${ready}` : cluster.state);
    entry.link.title = spelled(cluster.reason || cluster.file || "");
    if (cluster.name === context.name) entry.link.setAttribute("aria-current", "page");
    else entry.link.removeAttribute("aria-current");
    if (before ? before.nextSibling !== entry.link : nav.firstChild !== entry.link) {
      nav.insertBefore(entry.link, before ? before.nextSibling : nav.firstChild);
    }
    before = entry.link;
  }
}

function empty() {
  replace($("view"), el("div.empty", {}, el("h2", {}, "No cluster was ever up here"),
    el("p", {}, "Start one: dtfctl up FILE. It appears here by itself.")));
}

// -- the stream of one cluster

async function watch(name) {
  watching?.abort();
  const abort = (watching = new AbortController());
  Object.assign(context, { name, cluster: null, tasks: new Map(), events: [] });
  head();
  let isConnected = false;
  while (!abort.signal.aborted) {
    const once = new AbortController();
    const giveUp = () => once.abort();
    abort.signal.addEventListener("abort", giveUp);
    const silent = delayed(giveUp, SILENT_MS);
    try {
      silent();
      await stream("watch", { cluster: name }, once.signal, (change) => {
        silent();
        if (!isConnected && change.cluster) { context.tasks.clear(); context.events.length = 0; isConnected = true; connection(""); }
        take(change);
      });
    } catch (error) {
      if (abort.signal.aborted) return;
      connection(once.signal.aborted ? `dtfctl ui has not answered for ${SILENT_MS / 1000} s; the page asks again` : noAnswer(error));
    } finally {
      abort.signal.removeEventListener("abort", giveUp);
      silent.cancel();
    }
    isConnected = false;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

function take(change) {
  if (change.now) {
    sentAt = change.now;
    context.skewS = change.now - Date.now() / 1000;
  }
  if (change.error) { connection(change.error); return; }
  if (change.lookedS > OLD_S) connection(`The supervisor of this cluster has not answered for ${format.age(change.lookedS)}`);
  else if (change.lookedS !== undefined) connection("");
  if (!change.cluster) return;
  takenAt = Date.now() / 1000;
  connection("");
  context.cluster = change.cluster;
  for (const task of change.tasks) context.tasks.set(task.name, task);
  for (const name of change.gone) context.tasks.delete(name);
  for (const event of change.events) context.events.push(event);
  context.events.splice(0, Math.max(0, context.events.length - 300));
  pending.tasks.push(...change.tasks);
  pending.gone.push(...change.gone);
  pending.events.push(...change.events);
  draw();
}

let sentAt = 0; // when the last change was sent; with the count of updates it is how tests measure the page
const pending = { tasks: [], gone: [], events: [] };
const draw = framed(() => {
  const change = { tasks: pending.tasks, gone: pending.gone, events: pending.events };
  Object.assign(pending, { tasks: [], gone: [], events: [] });
  head();
  shown?.update?.(change);
  document.documentElement.dataset.lagMs = String(Date.now() - sentAt * 1000);
  document.documentElement.dataset.updates = String(Number(document.documentElement.dataset.updates || 0) + 1);
});

let trouble = ""; // why the page shows what was, and not what is
let takenAt = 0;

function connection(words) {
  if (words === trouble) return;
  trouble = words;
  if (context.cluster) wrong(context.cluster);
  write($("connection"), context.cluster ? "" : words);
}

function noAnswer(error) {
  if (error.status === 403) return "This address has expired: dtfctl ui was started anew. Open the address that it has printed";
  return error.status ? error.message : "dtfctl ui does not answer: it has ended, or cannot be reached; the page asks again";
}

function head() {
  const { cluster } = context;
  document.title = context.name ? `${cluster ? cluster.state : "…"} · ${context.name} · dtfctl` : "dtfctl";
  write($("name"), context.name || "dtfctl");
  write($("file"), cluster ? cluster.file : "");
  const state = $("state");
  state.hidden = !cluster;
  if (!cluster) { replace($("wrong")); replace($("cluster-actions")); return; }
  write(state, cluster.isOver || !cluster.outcome ? cluster.state : "ending");
  mark(state, "state", cluster.state);
  wrong(cluster);
  clusterActions(cluster);
}

function wrong(cluster) {
  const grade = cluster.findings.length ? cluster.findings[0].grade : cluster.ready === context.tasks.size ? "fine" : "none";
  const key = JSON.stringify([grade, cluster.headline, cluster.findings, trouble]);
  const place = $("wrong");
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  mark(place, "grade", trouble ? "error" : cluster.isOver && !cluster.findings.length ? "none" : grade);
  const lines = cluster.findings.map((finding) => el("li", { data: { kind: finding.kind, grade: finding.grade } },
    el("span.words", {}, finding.words), finding.advice ? el("span.advice", {}, "→ ", ...withCommands(finding.advice)) : null,
    finding.task ? el("button.link", { type: "button", onclick: () => go("logs", { task: finding.task }) },
      `logs of ${finding.task}`) : null));
  if (trouble) lines.unshift(el("li", { data: { kind: "no-answer", grade: "error" } }, el("span.words", {}, trouble),
    el("span.advice", {}, `→ the page shows what was at ${format.clock(takenAt)}`)));
  replace(place, el("span.sign", { "aria-hidden": "true" }, trouble || cluster.findings.length ? "!" : grade === "fine" || cluster.isOver ? "✓" : "…"),
    lines.length ? el("ul", {}, ...lines) : el("span.words", {}, cluster.headline));
}

function clusterActions(cluster) {
  const place = $("cluster-actions");
  const isOpen = !context.isReadOnly && !cluster.isOver && !cluster.outcome;
  if (String(isOpen) === place.dataset.open) return;
  place.dataset.open = String(isOpen);
  replace(place, ...(isOpen ? [
    el("button", { type: "button", data: { do: "scale" }, onclick: () => confirm("scale") }, "Scale"),
    el("button.bad", { type: "button", data: { do: "down" }, onclick: () => confirm("down") }, "Down"),
  ] : []));
}

function confirm(verb, tasks = []) {
  return confirmAction(context, act, verb, tasks);
}

// -- theme and keys

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function themed(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  shown?.restyle?.();
}

const KEYS = [
  ["1 … 6", "the views"], ["j, k", "the next or previous cluster"], ["/", "search in the view"],
  ["t", "dark or light"], ["Esc", "close a dialog"], ["?", "these keys"],
];

function showKeys() {
  const dialog = $("dialog");
  replace(dialog, el("h2", { id: "dialog-title" }, "Keys"),
    el("dl.keys", {}, ...KEYS.flatMap(([key, words]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)])),
    el("div.buttons", {}, el("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog").open) return;
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (isTyping) { if (event.key === "Escape") event.target.blur(); return; }
  const views = Object.keys(VIEWS);
  if (views[Number(event.key) - 1]) go(views[Number(event.key) - 1]);
  else if (event.key === "t") $("theme").click();
  else if (event.key === "?") showKeys();
  else if (event.key === "/") { event.preventDefault(); document.querySelector("#view input[type=search]")?.focus(); }
  else if (event.key === "j" || event.key === "k") {
    const names = context.clusters.map((each) => each.name);
    const next = names[names.indexOf(context.name) + (event.key === "j" ? 1 : -1)];
    if (next) go(place().view, {}, next);
  } else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && event.target.role === "tab") {
    const next = views[views.indexOf(place().view) + (event.key === "ArrowRight" ? 1 : -1)];
    if (next) { go(next); document.getElementById(`tab-${next}`)?.focus(); }
  } else return;
});

$("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  try { sessionStorage.setItem("theme", theme); } catch { /* not allowed here: it holds until a reload */ }
  themed(theme);
});
$("keys").addEventListener("click", showKeys);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themed(null));
try { themed(sessionStorage.getItem("theme")); } catch { themed(null); }
window.addEventListener("hashchange", route);
window.addEventListener("resize", reveal);
window.addEventListener("error", (event) => toast(`the page has failed: ${event.message}`, true));
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name !== "AbortError") toast(`the page has failed: ${event.reason?.message || event.reason}`, true);
});
poll();

/** Commands do not break at their hyphens, as far as they fit into a narrow window. */
function withCommands(words) {
  return words.split(/(dtfctl [^;,()?]{1,36}(?=$|[;,()?]))/).map((each, index) => (index % 2 ? el("span.command", {}, each) : each));
}
