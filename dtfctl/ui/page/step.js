// Step: some steps traced now (or a file of `dtfctl trace`), as lanes of time by task, and why they take so long.

import { get } from "./api.js";
import { el, replace, write } from "./dom.js";
import * as format from "./format.js";

const EVENTS_MAX = 6000;
const STEPS = 3;
const KINDS = ["step", "compute", "serve", "send", "transfer", "wait", "feed", "overhead"];
const HUES = { step: 220, compute: 150, serve: 190, send: 300, transfer: 265, wait: 35, feed: 345, overhead: 210 };

export function show(room, context) {
  const words = el("p.muted", { role: "status" }, "A trace shows the operations of each task in one step, the messages, and what waits for what.");
  const ask = el("button.primary", { type: "button", id: "trace" }, `Trace ${STEPS} steps`);
  const file = el("input", { type: "file", accept: ".json,application/json", "aria-label": "A file of dtfctl trace" });
  const save = el("a", { hidden: true, download: `${context.name}-trace.json` }, "Save for ui.perfetto.dev");
  const chosen = el("select", { "aria-label": "Step", hidden: true });
  const reasons = el("ul.reasons");
  const explanation = el("pre.plan", { hidden: true, "aria-label": "Explanation" });
  const ticks = el("div.ticks.steps-ticks", { "aria-hidden": "true" });
  const lanes = el("div.lanes.steps", { role: "list", "aria-label": "One step across all tasks" });
  const detail = el("p.detail", { role: "status" });
  const key = el("div.legend", { hidden: true }, ...KINDS.map((each) => el("span.run", {}, el("span.dot", { style: { background: `hsl(${HUES[each]} 45% 55%)` } }), each)),
    el("span.run", {}, el("span.dot", { style: { background: "var(--bad)" } }), "on the critical path"));
  room.append(
    el("div.row.bar", {}, ask, el("label.file", {}, "or open ", file), el("span.spread"), chosen, save),
    words,
    el("section.card", { "aria-label": "Why" }, el("h2", {}, "Why a step takes as long as it does"), reasons, explanation),
    el("section.card.life-card", { "aria-label": "Trace" }, el("div.row.bar", {}, el("h2", {}, "One step across all tasks"), el("span.spread"), key), ticks, lanes), detail);
  const cards = [...room.querySelectorAll("section")];
  cards.forEach((each) => { each.hidden = true; });
  const abort = new AbortController();
  let trace = null;

  async function request() {
    ask.disabled = true;
    write(words, "Tracing. The training goes on meanwhile.");
    try {
      const found = await get("trace", { cluster: context.name, steps: String(STEPS) }, abort.signal);
      take(found.trace, found.lines);
    } catch (error) {
      if (!abort.signal.aborted) write(words, error.message);
    } finally { ask.disabled = false; }
  }

  function take(document, lines) {
    trace = document;
    const found = document?.dtf?.explanation?.findings || [];
    replace(reasons, ...found.map((each) => el("li", {}, el("strong", {}, `${format.percent(each.share)}  `), each.words, el("span.advice", {}, ` → ${each.advice}`))));
    const sums = (lines || []).join("\n").split("\n\n")[0]; // the findings stand above it
    explanation.hidden = !sums;
    write(explanation, sums);
    cards[0].hidden = !found.length && !lines?.length;
    if (save.href) URL.revokeObjectURL(save.href);
    save.href = URL.createObjectURL(new Blob([JSON.stringify(document)], { type: "application/json" }));
    save.hidden = false;
    const steps = (document?.dtf?.steps || []).filter((each) => each.is_main);
    replace(chosen, el("option", { value: "" }, "all steps"), ...steps.map((each, index) => el("option", { value: String(index) }, `${each.client} step ${each.number}: ${format.number(each.duration_us / 1000, 3)} ms`)));
    chosen.hidden = !steps.length;
    chosen.value = steps.length ? "0" : "";
    draw();
  }

  function draw() {
    const events = (Array.isArray(trace) ? trace : trace?.traceEvents || []).filter((each) => each && typeof each === "object");
    const names = new Map(), order = new Map();
    for (const each of events) {
      if (each.ph === "M" && each.name === "process_name") names.set(each.pid, String(each.args?.name ?? each.pid));
      if (each.ph === "M" && each.name === "process_sort_index") order.set(each.pid, Number(each.args?.sort_index) || 0);
    }
    let all = events.filter((each) => each.ph === "X" && Number.isFinite(each.ts) && Number.isFinite(each.dur));
    const steps = (trace?.dtf?.steps || []).filter((each) => each.is_main);
    const step = chosen.value === "" ? null : steps[Number(chosen.value)];
    if (step) all = all.filter((each) => each.ts < step.start_us + step.duration_us && each.ts + each.dur > step.start_us);
    cards[1].hidden = !all.length;
    key.hidden = !all.length;
    if (!all.length) { write(words, "The trace holds no operation with a duration."); return; }
    const kept = [...all].sort((one, other) => other.dur - one.dur).slice(0, EVENTS_MAX);
    const begin = step ? step.start_us : kept.reduce((least, each) => Math.min(least, each.ts), Infinity);
    const end = step ? step.start_us + step.duration_us : kept.reduce((most, each) => Math.max(most, each.ts + each.dur), 0);
    const length = Math.max(1, end - begin);
    const part = (at) => Math.min(1, Math.max(0, (at - begin) / length));
    write(words, `${format.number(length / 1000, 3)} ms, ${all.length} operations${all.length > kept.length ? `; the ${kept.length} longest are shown` : ""}.`);
    replace(ticks, ...[0, 0.25, 0.5, 0.75, 1].map((at) => el("span", { style: { "--at": String(at) } }, `${format.number((at * length) / 1000, 3)} ms`)));
    const groups = new Map();
    for (const each of kept) {
      const name = `${each.pid}/${each.tid}`;
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(each);
    }
    let before = null;
    const rows = [...groups.entries()].sort(([, [one]], [, [other]]) => (order.get(one.pid) ?? one.pid) - (order.get(other.pid) ?? other.pid) || one.tid - other.tid);
    replace(lanes, ...rows.map(([, own]) => {
      const { pid } = own[0];
      const name = pid === before ? "" : names.get(pid) ?? String(pid);
      before = pid;
      const lane = el("div.lane");
      for (const each of own.sort((one, other) => one.ts - other.ts)) {
        const about = each.args?.name ? ` ${each.args.name}` : "";
        const label = `${each.name}${about}: ${format.number(each.dur / 1000, 3)} ms at ${format.number((each.ts - begin) / 1000, 3)} ms`;
        const hue = HUES[each.cat] ?? format.hash(String(each.cat || each.name)) % 360;
        lane.append(el("button.stretch.op", { type: "button", title: label, "aria-label": label, data: each.args?.critical ? { critical: "yes" } : {},
          style: { "--from": String(part(each.ts)), "--to": String(part(each.ts + each.dur)), "--hue": String(hue) },
          onclick: () => write(detail, `${names.get(pid) ?? pid}: ${label}${each.args?.bytes ? `, ${format.bytes(each.args.bytes)}` : ""}`) }));
      }
      return el("div.track", { role: "listitem" }, el("span.name", { title: names.get(pid) ?? "" }, name), lane);
    }));
  }

  ask.addEventListener("click", request);
  chosen.addEventListener("change", draw);
  file.addEventListener("change", async () => {
    try { take(JSON.parse(await file.files[0].text()), []); } catch (error) { write(words, `not a trace: ${error.message}`); }
  });
  function update() {
    ask.disabled = !context.cluster || context.cluster.isOver || Boolean(context.cluster.outcome);
  }
  return { update: () => { if (words.textContent !== "Tracing. The training goes on meanwhile.") update(); }, close: () => abort.abort() };
}
