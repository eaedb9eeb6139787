// Step: the newest trace that `dtfctl trace` has left (Chrome's JSON), as lanes of time by task.

import { get } from "./api.js";
import { el, replace, write } from "./dom.js";
import * as format from "./format.js";

const EVENTS_MAX = 5000;

export function show(room, context) {
  const words = el("p.muted", { role: "status" }, "…");
  const lanes = el("div.lanes", { role: "list", "aria-label": "One step across all tasks" });
  const detail = el("p.detail", { role: "status" });
  room.append(el("section.card.life-card", { "aria-label": "Trace" }, el("h2", {}, "One step across all tasks"), words, lanes), detail);
  const abort = new AbortController();

  function draw(trace) {
    const events = (Array.isArray(trace) ? trace : trace.traceEvents || []).filter((each) => each && typeof each === "object");
    const names = new Map();
    for (const each of events) if (each.ph === "M" && each.name === "process_name") names.set(each.pid, String(each.args?.name ?? each.pid));
    const all = events.filter((each) => each.ph === "X" && Number.isFinite(each.ts) && Number.isFinite(each.dur));
    if (!all.length) { write(words, "The trace holds no event with a duration."); return; }
    const kept = [...all].sort((one, other) => other.dur - one.dur).slice(0, EVENTS_MAX);
    const begin = Math.min(...kept.map((each) => each.ts));
    const length = Math.max(1, Math.max(...kept.map((each) => each.ts + each.dur)) - begin);
    write(words, `${format.number(length / 1000, 3)} ms, ${all.length} events${all.length > kept.length ? `, the ${kept.length} longest are shown` : ""}. The whole file opens in ui.perfetto.dev.`);
    const groups = new Map();
    for (const each of kept) {
      const key = `${each.pid}/${each.tid}`;
      groups.set(key, [...(groups.get(key) || []), each]);
    }
    replace(lanes, ...[...groups.entries()].sort(([one], [other]) => format.natural(one, other)).map(([key, own]) => {
      const pid = own[0].pid;
      const name = `${names.get(pid) ?? pid}`;
      const lane = el("div.lane");
      for (const each of own.sort((one, other) => one.ts - other.ts)) {
        const label = `${each.name}: ${format.number(each.dur / 1000, 3)} ms at ${format.number((each.ts - begin) / 1000, 3)} ms`;
        const isCritical = Boolean(each.args?.critical ?? each.args?.["critical path"]);
        lane.append(el("button.stretch.op", { type: "button", title: label, "aria-label": label, data: isCritical ? { critical: "yes" } : {},
          style: { "--from": String((each.ts - begin) / length), "--to": String((each.ts + each.dur - begin) / length), "--hue": String(format.hash(String(each.cat || each.name)) % 360) },
          onclick: () => write(detail, `${name} ${label}`) }));
      }
      return el("div.track", { role: "listitem" }, el("span.name", { title: key }, name), lane);
    }));
  }

  get("trace", { cluster: context.name }, abort.signal).then(draw, (error) => {
    if (!abort.signal.aborted) write(words, error.message === "no trace is there yet"
      ? `No trace is there yet. Ask a running training for one: dtfctl trace ${context.name}` : error.message);
  });
  return { close: () => abort.abort() };
}
