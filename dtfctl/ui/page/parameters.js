// Parameters: which variable lies on which parameter server, how many bytes; imbalance is said in words.

import { get } from "./api.js";
import { el, replace, write } from "./dom.js";
import * as format from "./format.js";
import { rates } from "./rates.js";

const ROWS_MAX = 500;

export function show(room, context) {
  const words = el("p.verdict", { role: "status" });
  const bars = el("div.servers", { role: "list", "aria-label": "Bytes by task" });
  const search = el("input", { type: "search", placeholder: "Filter variables", "aria-label": "Filter variables" });
  const about = el("span.muted");
  const body = el("tbody");
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...["Variable", "Place", "Shape", "Rows touched", "Bytes"].map((each) => el("th", { scope: "col" }, each)))), body);
  const list = el("section.card", { "aria-label": "Variables", hidden: true },
    el("div.row.bar", {}, el("h2", {}, "Variables"), about, el("span.spread"), search), el("div.scroll", {}, table));
  room.append(el("section.card", { "aria-label": "Balance" }, el("h2", {}, "Parameter servers"), words, bars),
    list);
  const abort = new AbortController();
  let found = null;
  const network = rates();

  function draw() {
    if (!found) return;
    const sums = new Map(found.servers.map((each) => [each, 0]));
    for (const each of found.variables) if (each.task) sums.set(each.task, (sums.get(each.task) || 0) + each.bytes);
    const total = [...sums.values()].reduce((one, other) => one + other, 0);
    const names = [...sums.keys()].sort(format.natural);
    const most = Math.max(1, ...sums.values());
    write(words, [found.why || verdict(sums, total), busiest(network.all())].filter(Boolean).join(" "));
    list.hidden = !found.variables.length;
    const dark = context.isDark();
    replace(bars, ...names.map((name) => {
      const own = found.variables.filter((each) => each.task === name);
      const task = context.tasks.get(name);
      const load = task && task.cores !== null ? ` · CPU ${format.percent(task.cores)}` : "";
      const rate = network.of(name);
      const traffic = rate ? ` · in ${format.bytes(rate.received)}/s, out ${format.bytes(rate.sent)}/s` : "";
      const bar = el("div.stack", {}, ...own.slice(0, 40).map((each, index) => el("span.part", {
        title: `${each.name}: ${format.bytes(each.bytes)}`,
        style: { "--size": String(each.bytes / most), "--colour": format.colour(index, dark) } })));
      return el("div.server", { role: "listitem" }, el("span.name", {}, name), bar,
        el("span.muted", {}, `${format.bytes(sums.get(name))} · ${total ? format.percent(sums.get(name) / total) : "–"} · ${own.length} variables${load}${traffic}`));
    }));
    filter();
  }

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    const fitting = found.variables.filter((each) => !wanted || `${each.name} ${each.task}`.toLowerCase().includes(wanted));
    write(about, found.graph ? `${fitting.length} of ${found.count ?? 0}, from ${found.graph}` : "");
    replace(body, ...fitting.slice(0, ROWS_MAX).map((each) => el("tr", {}, el("td", { title: each.name }, each.name), el("td", {}, each.task || "any"),
      el("td", {}, each.shape.length ? each.shape.map((size) => (size < 0 ? "?" : size)).join(" × ") : "scalar"), el("td", { title: "By sparse updates" }, touched(each)), el("td.number", {}, format.bytes(each.bytes)))));
  }

  function touched(variable) {
    const rate = network.of(variable.task)?.rows[variable.name];
    return rate === undefined ? "–" : `${format.number(rate, 3)} a second`;
  }

  const refresh = async () => {
    try { found = await get("parameters", { cluster: context.name }, abort.signal); draw(); } catch (error) { if (!abort.signal.aborted) write(words, error.message); }
  };
  /** Bytes a second between two looks at the counts that each server reports. */
  async function measure() {
    const now = await get("traffic", { cluster: context.name }, abort.signal).catch(() => ({}));
    network.take(now);
    draw();
  }

  search.addEventListener("input", () => found && filter());
  const timers = [
    setInterval(() => { if (!document.hidden) refresh(); }, 10000),
    setInterval(() => { if (!document.hidden && !context.cluster?.isOver) measure(); }, 4000),
  ];
  refresh();
  measure();
  return { restyle: draw, close: () => { abort.abort(); timers.forEach(clearInterval); } };
}

function busiest(found) {
  if (found.size < 2) return "";
  const all = [...found.entries()].map(([name, rate]) => [name, rate.sent + rate.received]);
  const total = all.reduce((sum, [, rate]) => sum + rate, 0);
  const [name, most] = all.reduce((one, other) => (other[1] > one[1] ? other : one));
  if (total < 1024 || most <= 1.5 * (total / all.length)) return "";
  return `Most of the traffic goes to ${name}: ${format.percent(most / total)} of ${format.bytes(total)}/s.`;
}

function verdict(sums, total) {
  if (!total) return "The graph names no variables on tasks.";
  if (sums.size < 2) return `All ${format.bytes(total)} lie on ${[...sums.keys()][0]}.`;
  const mean = total / sums.size;
  const [name, most] = [...sums.entries()].reduce((one, other) => (other[1] > one[1] ? other : one));
  if (most <= 1.5 * mean) return `Balanced: ${format.bytes(total)} on ${sums.size} tasks, at most ${format.percent(most / total)} on one (${name}).`;
  return `Out of balance: ${name} holds ${format.percent(most / total)} of ${format.bytes(total)}, ${(most / mean).toFixed(1)} times the average. `
    + "Spread the large variables with a partitioner, or place by size.";
}
