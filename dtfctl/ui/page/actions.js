// An action is asked for twice: first its plan is shown, word for word as the supervisor gives it, then it is done.

import { el, replace, toast, write } from "./dom.js";

const TITLES = { restart: "Restart", stop: "Stop", start: "Start", scale: "Scale", down: "Down" };

export async function confirmAction(context, act, verb, tasks) {
  const dialog = document.getElementById("dialog");
  const action = { cluster: context.name, do: verb };
  if (tasks.length) action.tasks = tasks;
  const title = verb === "down" ? `Down: end ${context.name}` : `${TITLES[verb]} ${tasks.join(", ") || context.name}`;
  const plan = el("pre.plan", { "aria-live": "polite", "aria-label": "Plan" }, "…");
  const sure = el("button.primary", { type: "button", id: "confirm", disabled: true }, TITLES[verb]);
  if (verb === "down" || verb === "stop") sure.classList.add("bad");
  const close = el("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  let number = 0;

  async function look() {
    const own = ++number;
    sure.disabled = true;
    try {
      const { lines } = await act({ ...action, isPlan: true });
      if (own !== number) return;
      write(plan, lines.join("\n"));
      sure.disabled = false;
    } catch (error) {
      if (own === number) write(plan, error.message);
    }
  }

  sure.addEventListener("click", async () => {
    sure.disabled = true;
    write(sure, "…");
    try {
      const { lines } = await act({ ...action, isPlan: false });
      dialog.close();
      toast(lines.at(-1) || "done");
    } catch (error) {
      write(plan, error.message);
      write(sure, TITLES[verb]);
    }
  });

  const choice = verb === "scale" ? scaleChoice(context, action, look) : null;
  replace(dialog, el("h2", { id: "dialog-title" }, title), choice, el("div.label", {}, "Plan"), plan,
    el("div.buttons", {}, close, sure));
  dialog.showModal();
  close.focus();
  await look();
}

function scaleChoice(context, action, look) {
  const counts = new Map();
  for (const task of context.tasks.values()) counts.set(task.job, (counts.get(task.job) || 0) + 1);
  const jobs = [...counts.keys()];
  action.job = jobs.includes("worker") ? "worker" : jobs[0];
  action.replicas = counts.get(action.job);
  const number = el("input", { type: "number", min: "0", max: "10000", id: "scale-number" });
  number.value = action.replicas;
  const job = el("select", { id: "scale-job" }, ...jobs.map((each) => el("option", { value: each }, each)));
  job.value = action.job;
  job.addEventListener("change", () => {
    action.job = job.value;
    number.value = action.replicas = counts.get(job.value);
    look();
  });
  number.addEventListener("input", () => { action.replicas = Math.max(0, Math.round(Number(number.value) || 0)); look(); });
  return el("div.row", {}, el("label", { for: "scale-job" }, "Job"), job, el("label", { for: "scale-number" }, "Tasks"), number);
}
