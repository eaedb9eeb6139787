// Overview: figures of the run, a tile for each task by job or host, what is planned next, what has happened.

import { get } from "./api.js";
import { el, mark, replace, spelled, write } from "./dom.js";
import * as format from "./format.js";
import { rates } from "./rates.js";
import { glimpse } from "./training.js";

const COMPACT_FROM = 80;
const EVENTS_SHOWN = 60;
const MEASURED_EVERY_MS = 4000;
const MEASURED_TASKS_MAX = 200;
const ENDED = ["stopped", "succeeded", "failed", "gave-up"];

export function show(room, context) {
  const figures = el("section.figures", { "aria-label": "Figures" });
  const search = el("input", { type: "search", placeholder: "Filter tasks and hosts", "aria-label": "Filter tasks" });
  const by = el("select", { "aria-label": "Group by" }, el("option", { value: "job" }, "by job"), el("option", { value: "host" }, "by host"));
  const count = el("span.muted");
  const groups = el("div.groups");
  const planned = el("ul.planned", { "aria-live": "polite" });
  const events = el("ol.events");
  const glimpses = el("div.charts.small");
  room.append(
    figures,
    el("div.columns", {},
      el("div.aside", {},
        el("section.card.tasks", { "aria-label": "Tasks" },
          el("div.row.bar", {}, el("h2", {}, "Tasks"), count, el("span.spread"), search, by), groups),
        el("section.card", { "aria-label": "Training", hidden: true }, el("div.row", {}, el("h2", {}, "Training"), el("span.spread"),
          el("button.link", { type: "button", onclick: () => context.go("training") }, "all curves")), glimpses)),
      el("div.aside", {},
        el("section.card", { "aria-label": "Planned next" }, el("h2", {}, "Next"), planned),
        el("section.card", { "aria-label": "Events" }, el("h2", {}, "Events"), events))),
  );
  const values = makeFigures(figures);
  const tiles = new Map();
  const rooms = new Map();
  let isCompact = null;
  const abort = new AbortController();
  const network = rates();
  let gpus = {};

  /** Network and GPUs of the tasks: what a supervisor does not ask for by itself. */
  async function measure() {
    if (document.hidden || !context.cluster || context.cluster.isOver || context.tasks.size > MEASURED_TASKS_MAX) return;
    const ask = (what, more = {}) => get(what, { cluster: context.name, ...more }, abort.signal).catch(() => ({}));
    const [counts, found] = await Promise.all([ask("traffic", { of: "all" }), ask("gpus")]);
    network.take(counts);
    gpus = found;
    for (const [name, tile] of tiles) tile.measured(extras(name));
  }

  function extras(name) {
    return { rate: network.of(name), gpu: gpus[name] || null };
  }

  function groupOf(task) {
    return by.value === "host" ? task.host : task.job;
  }

  function groupFor(name) {
    let group = rooms.get(name);
    if (!group) {
      const about = el("span.muted");
      const grid = el("div.tiles", { role: "list" });
      const section = el("section.group", { "aria-label": name }, el("h3", {}, name, " ", about), grid);
      group = { name, section, grid, about, count: 0 };
      rooms.set(name, group);
      const after = [...rooms.keys()].filter((each) => format.natural(name, each) < 0).sort(format.natural)[0];
      groups.insertBefore(section, after ? rooms.get(after).section : null);
    }
    return group;
  }

  function build() {
    tiles.clear();
    rooms.clear();
    replace(groups);
    const sorted = [...context.tasks.values()].sort((one, other) => format.natural(one.name, other.name));
    for (const task of sorted) addTile(task);
  }

  function addTile(task) {
    const tile = makeTile(task, () => open(context, task.name, extras(task.name)));
    const group = groupFor(groupOf(task));
    tiles.set(task.name, tile);
    group.grid.append(tile.item);
    tile.update(task);
    tile.measured(extras(task.name));
  }

  function fits(task) {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const text = `${task.name} ${task.host} ${task.state} ${task.stalled ? "stalled" : ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }

  function filter() {
    let shown = 0;
    const counts = new Map();
    for (const task of context.tasks.values()) {
      const tile = tiles.get(task.name);
      if (!tile) continue;
      const isShown = fits(task);
      if (tile.item.hidden === isShown) tile.item.hidden = !isShown;
      shown += isShown;
      const each = counts.get(groupOf(task)) || [0, 0, 0];
      counts.set(groupOf(task), [each[0] + task.isReady, each[1] + 1, each[2] + isShown]);
    }
    for (const [name, group] of rooms) {
      const [ready, all, some] = counts.get(name) || [0, 0, 0];
      write(group.about, `${ready} of ${all} ready`);
      group.section.hidden = !some;
    }
    write(count, shown === context.tasks.size ? `${shown}` : `${shown} of ${context.tasks.size}`);
  }

  function update(change) {
    const compact = context.tasks.size >= COMPACT_FROM;
    if (compact !== isCompact) { isCompact = compact; groups.classList.toggle("compact", compact); }
    if (change === null || !tiles.size || change.gone.some((name) => tiles.has(name))) build();
    else {
      for (const task of change.tasks) {
        const tile = tiles.get(task.name);
        if (!tile) addTile(task);
        else if (tile.group !== undefined && tile.group !== groupOf(task)) { build(); break; }
        else tile.update(task);
      }
    }
    filter();
    values(context);
    showPlanned(planned, context);
    showEvents(events, context);
  }

  search.addEventListener("input", filter);
  by.addEventListener("change", () => { build(); filter(); });
  const timer = setInterval(() => { if (context.cluster) { values(context); showPlanned(planned, context); } }, 1000);
  const measuring = setInterval(measure, MEASURED_EVERY_MS);
  const begun = setTimeout(measure, 300); // once the first snapshot is there
  const curves = glimpse(glimpses, context, 2);
  return {
    update, restyle: curves.restyle,
    close: () => { abort.abort(); clearTimeout(begun); [timer, measuring].forEach(clearInterval); curves.close(); },
  };
}

function makeFigures(place) {
  const parts = {};
  for (const [key, title] of [["tasks", "Tasks ready"], ["step", "Global step"], ["rate", "Steps / s"], ["loss", "Loss"],
    ["restarts", "Restarts"], ["cpu", "CPU cores"], ["memory", "Memory"], ["time", "Running for"]]) {
    parts[key] = el("div.value", {}, "–");
    place.append(el("div.figure", { data: { key } }, el("div.label", {}, title), parts[key]));
  }
  return (context) => {
    const { cluster, tasks } = context;
    let cores = 0, memory = 0, ready = 0, isMeasured = false;
    for (const task of tasks.values()) {
      if (task.cores !== null) { cores += task.cores; memory += task.memory || 0; isMeasured = true; }
      ready += task.isReady;
    }
    write(parts.tasks, `${ready} / ${tasks.size}`);
    write(parts.step, format.number(cluster.step));
    write(parts.rate, format.number(cluster.isOver ? null : cluster.stepsPerS, 3));
    write(parts.loss, cluster.lossIsNaN ? "NaN" : format.number(cluster.loss, 3));
    parts.loss.classList.toggle("bad", cluster.lossIsNaN);
    write(parts.restarts, String(cluster.restarts));
    write(parts.cpu, isMeasured ? format.number(Number(cores.toFixed(1))) : "–");
    write(parts.memory, isMeasured ? format.bytes(memory) : "–");
    write(parts.time.previousSibling, cluster.isOver ? "Started" : "Running for");
    const running = context.now() - cluster.startedAt;
    write(parts.time, cluster.isOver ? `${format.age(running)} ago` : format.age(running));
  };
}

function makeTile(task, onopen) {
  const parts = {
    name: el("span.name"), state: el("span.state"), restarts: el("span.restarts"), load: el("span.load"),
    measured: el("span.measured"), extra: el("span.measured.extra"), words: el("span.words"),
  };
  const tile = el("button.tile", { type: "button", onclick: onopen, id: `tile-${task.name}` },
    el("span.top", {}, parts.name, parts.restarts, parts.state), parts.measured, parts.extra, el("span.gauge", { "aria-hidden": "true" }, parts.load), parts.words);
  const item = el("div.item", { role: "listitem" }, tile);
  function update(task) {
    const state = task.stalled ? "stalled" : task.state;
    mark(tile, "state", state);
    write(parts.name, task.name);
    write(parts.state, state);
    write(parts.restarts, task.restarts ? `↻ ${task.restarts}` : "");
    const measured = [];
    if (task.cores !== null) measured.push(`${Math.round(100 * task.cores)} %`, format.bytes(task.memory));
    if (task.stepsPerS !== null) measured.push(`${format.number(task.stepsPerS, 3)} steps/s`);
    write(parts.measured, measured.join(" · ") || (task.host === "localhost" ? " " : task.host));
    parts.load.style.setProperty("--part", String(Math.min(1, task.cores || 0)));
    const words = task.stalled || task.words;
    write(parts.words, words || " ");
    const label = spelled(`${task.name}, ${state}${words ? `, ${words}` : ""}`);
    if (tile.title !== label) { tile.title = label; tile.setAttribute("aria-label", label); }
  }
  function measured({ rate, gpu }) {
    write(parts.extra, [rate && `in ${format.bytes(rate.received)}/s, out ${format.bytes(rate.sent)}/s`, gpu && gpuWords(gpu)].filter(Boolean).join(" · "));
    parts.extra.hidden = !parts.extra.textContent;
  }
  return { item, update, measured };
}

function gpuWords(gpu) {
  const which = `GPU ${gpu.gpus.join(", ")}`;
  return `${which}: ${gpu.busy === null ? "–" : format.percent(gpu.busy)}, ${format.bytes(gpu.used)} of ${format.bytes(gpu.total)}`;
}

function showPlanned(place, context) {
  const { cluster } = context;
  const now = context.now();
  const items = cluster.planned.map((each) => {
    const when = each.at === null ? "" : each.at > now ? ` in ${format.age(each.at - now)}` : " now";
    return el("li", {}, el("strong", {}, `${each.do}${each.task ? ` ${each.task}` : ""}${when}`), el("span.muted", {}, each.why));
  });
  const key = items.map((each) => each.textContent).join("\n");
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  replace(place, ...(items.length ? items : [el("li.muted", {}, cluster.isOver ? "The run has ended." : "Nothing: all tasks are as they should be.")]));
}

function showEvents(place, context) {
  const last = context.events.slice(-EVENTS_SHOWN).reverse();
  const key = `${context.name} ${last.length ? last[0].id : 0}`;
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  replace(place, ...last.map((event) => el("li", { data: { what: event.what } }, el("time", {}, format.clock(event.time)),
    el("span", {}, el("span.task", {}, event.task || "cluster"), " ", el("span.what", {}, event.what)), el("span.muted", {}, event.cause))));
}

function open(context, name, { rate, gpu }) {
  const task = context.tasks.get(name);
  if (!task) return;
  const dialog = document.getElementById("dialog");
  const now = context.now();
  const rows = [
    ["State", task.state], ["Host", task.host], ["Address", task.address || "–"], ["Process", task.pid ? `pid ${task.pid}, generation ${task.generation}` : "–"],
    ["Since", task.since === null ? "–" : `${format.clock(task.since)} (${format.age(now - task.since)})`],
    ["Restarts", String(task.restarts)], ["CPU", task.cores === null ? "–" : `${Math.round(100 * task.cores)} % of a core`],
    ["Memory", format.bytes(task.memory)], ["Threads", task.threads === null ? "–" : String(task.threads)],
    ["Network", rate ? `${format.bytes(rate.received)}/s in, ${format.bytes(rate.sent)}/s out` : "–"],
    gpu ? ["GPU", gpuWords(gpu)] : null,
    ["Steps", task.stepsPerS === null ? "–" : `${format.number(task.stepsPerS, 3)} a second`],
    ["Last", task.words || "–"], ["Stalled", task.stalled || "no"],
  ].filter(Boolean);
  const isOpen = !context.isReadOnly && !context.cluster.isOver && !context.cluster.outcome;
  const isEnded = ENDED.includes(task.state);
  const act = (verb) => () => { dialog.close(); context.act(verb, [name]); };
  replace(dialog, el("h2", { id: "dialog-title" }, name), el("dl.facts", {}, ...rows.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])),
    el("div.buttons", {},
      el("button", { type: "button", onclick: () => { dialog.close(); context.go("logs", { task: name }); } }, "Logs"),
      isOpen ? el("button", { type: "button", data: { do: "restart" }, onclick: act("restart") }, "Restart") : null,
      isOpen && !isEnded ? el("button.bad", { type: "button", data: { do: "stop" }, onclick: act("stop") }, "Stop") : null,
      isOpen && isEnded ? el("button", { type: "button", data: { do: "start" }, onclick: act("start") }, "Start") : null,
      el("button.primary", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

