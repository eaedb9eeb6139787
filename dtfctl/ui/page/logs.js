// Logs: the lines of all tasks by time, searched, filtered by task and level, followed; or those around a moment.

import { stream } from "./api.js";
import { delayed, el, replace, write } from "./dom.js";
import * as format from "./format.js";

const ROWS_MAX = 4000;
const AROUND_S = 20;
const LEVELS = ["error", "warning", "info", "other"];

export function show(room, context, query) {
  const search = el("input", { type: "search", placeholder: "Words or an expression", "aria-label": "Search in logs" });
  const tasks = el("select", { "aria-label": "Tasks" });
  const levels = el("div.choices.levels", { role: "group", "aria-label": "Levels" });
  const run = el("select", { "aria-label": "Run" });
  const follow = el("input", { type: "checkbox", id: "follow" });
  const moment = el("button.chip", { type: "button", hidden: true });
  const count = el("span.muted", { role: "status" });
  const list = el("div.lines", { role: "log", "aria-label": "Log lines", tabindex: "0" });
  follow.checked = true;
  room.append(el("div.row.bar", {}, search, tasks, levels, run, el("label", { for: "follow" }, follow, " follow"), moment,
    el("span.spread"), count), list);
  for (const level of LEVELS) {
    const box = el("input", { type: "checkbox", value: level });
    box.addEventListener("change", ask);
    levels.append(el("label", {}, box, ` ${level}`));
  }
  search.value = query.get("search") || "";
  let at = query.has("at") ? Number(query.get("at")) : null;
  let abort = null, shown = 0, wanted = query.get("task") || "";

  function listTasks() {
    const names = [...context.tasks.keys()].sort(format.natural);
    const jobs = [...new Set(names.map((each) => each.split(":")[0]))];
    if (wanted && !names.includes(wanted)) names.push(wanted);
    const key = names.join("|");
    if (tasks.dataset.key === key) return;
    tasks.dataset.key = key;
    const chosen = tasks.value || wanted;
    replace(tasks, el("option", { value: "" }, "all tasks"), ...jobs.map((job) => el("option", { value: `${job}:` }, `${job} (all)`)),
      ...names.map((each) => el("option", { value: each }, each)));
    tasks.value = chosen;
  }

  function listRuns() {
    const found = context.clusters.find((each) => each.name === context.name)?.runs || [];
    const key = found.join("|");
    if (run.dataset.key === key) return;
    run.dataset.key = key;
    const chosen = run.value;
    replace(run, ...(found.length ? found : [0]).map((each, index) => el("option", { value: index ? String(each) : "" }, index ? `run ${each}` : "this run")));
    run.value = chosen;
    run.hidden = found.length < 2;
  }

  async function ask() {
    abort?.abort();
    const own = (abort = new AbortController());
    const chosen = tasks.value || wanted;
    const names = chosen.endsWith(":") ? [...context.tasks.keys()].filter((each) => each.startsWith(chosen)) : chosen;
    moment.hidden = at === null;
    if (at !== null) write(moment, `around ${format.clock(at)} ✕`);
    const question = {
      cluster: context.name, task: names, pattern: search.value.trim(), run: run.value,
      level: [...levels.querySelectorAll("input:checked")].map((each) => each.value),
      ...(at === null ? {} : { since: String(at - AROUND_S), until: String(at + AROUND_S) }),
    };
    write(count, "…");
    let isFirst = true;
    while (!own.signal.aborted) {
      try {
        let isOver = false;
        await stream("logs", question, own.signal, (change) => {
          if (change.isOver) isOver = true;
          if (change.error) write(count, change.error);
          if (!change.lines) return;
          if (change.isPast) { replace(list); shown = 0; }
          add(change.lines, change.isPast && isFirst);
          isFirst = false;
        });
        if (isOver) return;
      } catch (error) {
        if (own.signal.aborted) return;
        write(count, error.message);
        if (error.message.startsWith("not a pattern")) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1500));
    }
  }

  function add(lines, isFirst) {
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    let near = null;
    list.append(...lines.map((line) => {
      const row = el("div.line", { data: { level: line.level } }, el("time", { title: format.day(line.time) }, format.clock(line.time, true)),
        el("span.task", { style: { "--task": String((format.hash(line.task) * 137) % 360) } }, line.task), el("span.text", {}, line.text));
      if (at !== null && line.time <= at) near = row;
      return row;
    }));
    shown += lines.length;
    while (list.childElementCount > ROWS_MAX) list.firstElementChild.remove();
    write(count, `${format.number(Math.min(shown, ROWS_MAX))} lines`);
    if (near) { near.classList.add("near"); near.scrollIntoView({ block: "center" }); }
    else if (at === null && follow.checked && (isFirst || isAtEnd)) list.scrollTop = list.scrollHeight;
    if (!list.childElementCount) replace(list, el("p.muted.note", {}, "No line fits."));
    else if (list.childElementCount > 1) list.querySelector(".note")?.remove();
  }

  list.addEventListener("scroll", () => { if (list.scrollHeight - list.scrollTop - list.clientHeight > 200) follow.checked = false; });
  follow.addEventListener("change", () => { if (follow.checked) list.scrollTop = list.scrollHeight; });
  moment.addEventListener("click", () => { at = null; ask(); });
  search.addEventListener("input", delayed(ask, 250));
  tasks.addEventListener("change", () => { wanted = ""; ask(); });
  run.addEventListener("change", ask);
  listTasks();
  listRuns();
  ask();
  return { update: () => { listTasks(); listRuns(); }, close: () => abort?.abort() };
}
