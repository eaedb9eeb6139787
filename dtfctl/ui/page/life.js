// Life: each task's life as a lane of time, with the cause of each change.

import { get } from "./api.js";
import { delayed, el, replace, write } from "./dom.js";
import * as format from "./format.js";

const SPANS = [["0", "whole run"], ["86400", "last day"], ["3600", "last hour"], ["600", "last 10 min"], ["60", "last minute"]];
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];

export function show(room, context) {
  const search = el("input", { type: "search", placeholder: "Filter tasks", "aria-label": "Filter tasks" });
  const span = el("select", { "aria-label": "Span" }, ...SPANS.map(([value, words]) => el("option", { value }, words)));
  const only = el("input", { type: "checkbox", id: "only-restarted" });
  const ticks = el("div.ticks", { "aria-hidden": "true" });
  const lanes = el("div.lanes", { role: "list", "aria-label": "Lives of tasks" });
  const detail = el("p.detail", { role: "status" }, "Choose a stretch to read its cause.");
  const key = el("div.legend", {}, ...["starting", "running", "backoff", "stopping", "stopped", "succeeded", "failed"].map((each) =>
    el("span.run", { data: { state: each } }, el("span.dot", { data: { state: each } }), each)));
  room.append(el("div.row.bar", {}, search, span, el("label", { for: "only-restarted" }, only, " only restarted"), el("span.spread"), key),
    el("section.card.life-card", {}, ticks, lanes), detail);
  const abort = new AbortController();
  let found = null;

  function draw() {
    if (!found) return;
    const now = found.endedAt || context.now();
    const begin = Number(span.value) ? Math.max(found.startedAt, now - Number(span.value)) : found.startedAt;
    const length = Math.max(1, now - begin);
    const part = (at) => Math.min(1, Math.max(0, (at - begin) / length));
    const step = STEPS.find((each) => length / each <= 8) || length;
    const marks = [];
    for (let at = Math.ceil(begin / step) * step; at <= now; at += step) {
      marks.push(el("span", { style: { "--at": String(part(at)) } }, format.clock(at)));
    }
    replace(ticks, ...marks);
    const words = search.value.trim().toLowerCase();
    const troubles = new Map();
    for (const each of found.troubles) troubles.set(each.task, [...(troubles.get(each.task) || []), each]);
    replace(lanes, ...found.tasks.filter((task) => (!words || task.name.toLowerCase().includes(words))
      && (!only.checked || task.stretches.filter((each) => each.state === "starting").length > 1)).map((task) => {
      const lane = el("div.lane");
      for (const each of task.stretches) {
        const until = each.until ?? now;
        if (until < begin) continue;
        const words = `${task.name} ${each.state} from ${format.clock(each.since)}, ${format.age(until - each.since)}: ${each.cause}`;
        lane.append(el("button.stretch", { type: "button", title: words, "aria-label": words, data: { state: each.state },
          style: { "--from": String(part(each.since)), "--to": String(part(until)) },
          onclick: () => replace(detail, el("strong", {}, `${task.name} ${each.state}`), ` ${format.day(each.since)}, ${format.age(until - each.since)}: ${each.cause} `,
            el("button.link", { type: "button", onclick: () => context.go("logs", { task: task.name, at: String(each.since) }) }, "logs then")) }));
      }
      for (const each of troubles.get(task.name) || []) {
        if (each.time >= begin) lane.append(el("span.trouble", { title: each.words, style: { "--at": String(part(each.time)) } }));
      }
      return el("div.track", { role: "listitem" }, el("span.name", { title: task.name }, task.name), lane);
    }));
    if (!lanes.childElementCount) replace(lanes, el("p.muted.note", {}, "No task fits."));
  }

  const refresh = async () => {
    try { found = await get("lives", { cluster: context.name }, abort.signal); draw(); } catch (error) { if (!abort.signal.aborted) write(detail, error.message); }
  };
  const soon = delayed(refresh, 300);
  search.addEventListener("input", draw);
  span.addEventListener("change", draw);
  only.addEventListener("change", draw);
  const timer = setInterval(() => { if (found && !found.endedAt && !lanes.contains(document.activeElement)) draw(); }, 3000);
  refresh();
  return { update: (change) => { if (!change || change.events.length) soon(); }, close: () => { abort.abort(); clearInterval(timer); } };
}
