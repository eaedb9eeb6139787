// Training: every scalar of the event files as a zoomable curve, runs laid over one another; histograms and images.

import { get, picture } from "./api.js";
import { delayed, el, replace, write } from "./dom.js";
import * as format from "./format.js";
import { bars, lines } from "./chart.js";

const BUCKETS = 40;
const REFRESH_MS = 2500;
const POINTS = 700;
const FIRST = [/(^|\/)loss/, /accuracy/, /global_step\/sec|steps?_per_s/, /staleness/, /learning_rate|(^|\/)lr$/];
const UNTIL_HEIGHT = 190;

const rank = (tag) => { const found = FIRST.findIndex((each) => each.test(tag)); return found < 0 ? FIRST.length : found; };

export function show(room, context) {
  const name = context.name;
  const search = el("input", { type: "search", placeholder: "Filter curves", "aria-label": "Filter curves" });
  const axis = select("Axis", [["step", "by step"], ["time", "by time"], ["relative", "since start"]]);
  const smooth = el("input", { type: "range", min: "0", max: "0.98", step: "0.01", value: "0", "aria-label": "Smoothing" });
  const log = el("input", { type: "checkbox", id: "log-scale" });
  const others = el("div.choices", { role: "group", "aria-label": "Compare with" });
  const compare = el("details.compare", {}, el("summary", {}, "Compare"), others);
  const legend = el("div.legend", { "aria-label": "Runs" });
  const curves = el("div.charts");
  const histograms = el("div.charts");
  const images = el("div.images");
  const note = el("p.muted.note");
  const sections = [
    el("section", { "aria-label": "Curves" }, curves),
    el("section", { "aria-label": "Histograms", hidden: true }, el("h2", {}, "Histograms"), histograms),
    el("section", { "aria-label": "Images", hidden: true }, el("h2", {}, "Images"), images),
  ];
  room.append(el("div.row.bar", {}, search, axis, el("label.smooth", {}, "Smooth ", smooth),
    el("label", { for: "log-scale" }, log, " log"), compare, el("span.spread"), legend), note, ...sections);

  const state = { context, name, charts: new Map(), visible: new Set(), hidden: new Set(), tags: null, compared: new Set(), marks: [] };
  const seen = new IntersectionObserver((found) => {
    for (const each of found) {
      if (each.isIntersecting) { state.visible.add(each.target.dataset.tag); state.charts.get(each.target.dataset.tag)?.refresh(); }
      else state.visible.delete(each.target.dataset.tag);
    }
  }, { rootMargin: "200px" });
  const resized = new ResizeObserver((found) => { for (const each of found) state.charts.get(each.target.dataset.tag)?.resize(); });
  const settings = () => ({ axis: axis.value, smooth: Number(smooth.value), isLog: log.checked });
  const abort = new AbortController();

  async function refreshTags() {
    const names = [name, ...state.compared];
    const found = await Promise.all(names.map((each) => get("tags", { cluster: each }, abort.signal).catch(() => null)));
    if (abort.signal.aborted) return;
    state.tags = found[0];
    state.clusters = names;
    const tags = new Set();
    found.forEach((each) => { for (const run of Object.values(each?.runs || {})) run.scalars.forEach((tag) => tags.add(tag)); });
    const sorted = [...tags].sort((one, other) => rank(one) - rank(other) || format.natural(one, other));
    for (const tag of sorted) {
      if (state.charts.has(tag)) continue;
      const chart = makeChart(tag, state, settings);
      state.charts.set(tag, chart);
      curves.append(chart.card);
      seen.observe(chart.card);
      resized.observe(chart.card);
    }
    arrange(curves, sorted.map((tag) => state.charts.get(tag).card));
    filter();
    showSamples(found[0]);
    write(note, sorted.length ? "" : found[0]?.folder ? `No event files are in ${found[0].folder} yet.`
      : "The cluster file names no checkpoint_dir on this machine: there are no event files to show.");
    note.hidden = Boolean(sorted.length);
  }

  const samples = new Map();
  const shown = new IntersectionObserver((found) => {
    for (const each of found) {
      const sample = samples.get(each.target.dataset.key);
      sample.isShown = each.isIntersecting;
      if (each.isIntersecting) sample.refresh();
    }
  }, { rootMargin: "200px" });
  function showSamples(found) {
    for (const [run, kinds] of Object.entries(found?.runs || {})) {
      for (const tag of kinds.histograms) add("histogram", run, tag, histograms, sections[1], makeHistogram);
      for (const tag of kinds.images) add("image", run, tag, images, sections[2], makeImage);
    }
    for (const sample of samples.values()) if (sample.isShown) sample.refresh();
  }
  function add(kind, run, tag, place, section, make) {
    const key = JSON.stringify([kind, run, tag]);
    if (samples.has(key)) return;
    const sample = make(context, name, run, tag, abort.signal);
    samples.set(key, sample);
    sample.card.dataset.key = key;
    place.append(sample.card);
    section.hidden = false;
    shown.observe(sample.card);
  }

  function filter() {
    const words = search.value.trim().toLowerCase();
    for (const [tag, chart] of state.charts) chart.card.hidden = Boolean(words) && !tag.toLowerCase().includes(words);
    for (const sample of samples.values()) sample.card.hidden = Boolean(words) && !sample.card.dataset.key.toLowerCase().includes(words);
  }

  function showLegend() {
    const runs = new Map();
    for (const chart of state.charts.values()) for (const each of chart.runs()) runs.set(each.key, each);
    const key = [...runs.keys(), ...state.hidden].join("|") + context.isDark();
    if (legend.dataset.key === key) return;
    legend.dataset.key = key;
    replace(legend, ...[...runs.values()].map((each) => el("button.run", {
      type: "button", "aria-pressed": String(!state.hidden.has(each.key)), style: { "--run": each.colour, "--dash": each.dash },
      onclick: () => { state.hidden.has(each.key) ? state.hidden.delete(each.key) : state.hidden.add(each.key); redraw(); },
    }, el("span.swatch"), each.label)));
  }

  function listOthers() {
    const names = context.clusters.map((each) => each.name).filter((each) => each !== name);
    const key = names.join("|");
    if (others.dataset.key === key) return;
    others.dataset.key = key;
    replace(others, ...(names.length ? names.map((each) => {
      const box = el("input", { type: "checkbox" });
      box.checked = state.compared.has(each);
      box.addEventListener("change", () => {
        box.checked ? state.compared.add(each) : state.compared.delete(each);
        refreshTags().then(redrawAll);
      });
      return el("label", {}, box, " ", each);
    }) : [el("span.muted", {}, "no other cluster")]));
  }

  const redraw = () => { for (const chart of state.charts.values()) chart.draw(); showLegend(); };
  const redrawAll = () => { for (const tag of state.visible) state.charts.get(tag)?.refresh(); };
  search.addEventListener("input", filter);
  axis.addEventListener("change", () => { for (const chart of state.charts.values()) chart.reset(); redraw(); });
  smooth.addEventListener("input", delayed(redraw, 60));
  log.addEventListener("change", redraw);

  state.onloaded = showLegend;
  let timer = 0;
  async function tick() {
    listOthers();
    if (!document.hidden) {
      try { await refreshTags(); } catch (error) { if (!abort.signal.aborted) write(note, error.message); }
      redrawAll();
    }
    if (!abort.signal.aborted) timer = setTimeout(tick, REFRESH_MS);
  }
  tick();
  return {
    restyle: () => { for (const chart of state.charts.values()) chart.draw(true); for (const each of samples.values()) each.restyle?.(); showLegend(); },
    close: () => { abort.abort(); clearTimeout(timer); seen.disconnect(); shown.disconnect(); resized.disconnect(); for (const each of state.charts.values()) each.destroy(); },
  };
}

/** The first curves (loss, accuracy, rate), small, for another view. Nothing where there are none. */
export function glimpse(place, context, count) {
  const state = { context, name: context.name, clusters: [context.name], charts: new Map(), hidden: new Set(), tags: null, onloaded: () => {} };
  const resized = new ResizeObserver((found) => { for (const each of found) state.charts.get(each.target.dataset.tag)?.resize(); });
  const abort = new AbortController();
  async function refresh() {
    const found = await get("tags", { cluster: state.name }, abort.signal).catch(() => null);
    if (abort.signal.aborted || !found) return;
    state.tags = found;
    const tags = [...new Set(Object.values(found.runs).flatMap((each) => each.scalars))].sort((one, other) => rank(one) - rank(other) || format.natural(one, other));
    const wanted = tags.filter((tag) => /(^|\/)loss/.test(tag)).slice(0, 1).concat(tags.filter((tag) => rank(tag) === 2).slice(0, 1));
    for (const tag of (wanted.length ? wanted : tags).slice(0, count)) {
      if (!state.charts.has(tag)) {
        const chart = makeChart(tag, state, () => ({ axis: "step", smooth: 0, isLog: false }), "figure.chart");
        state.charts.set(tag, chart);
        place.append(chart.card);
        resized.observe(chart.card);
      }
      state.charts.get(tag).refresh();
    }
    place.parentElement.hidden = !state.charts.size;
  }
  const timer = setInterval(() => { if (!document.hidden) refresh(); }, REFRESH_MS);
  refresh();
  return {
    restyle: () => { for (const chart of state.charts.values()) chart.draw(true); },
    close: () => { abort.abort(); clearInterval(timer); resized.disconnect(); for (const each of state.charts.values()) each.destroy(); },
  };
}

/** Puts elements into this order. One that is in its place is not moved: it would lose the focus. */
function arrange(place, elements) {
  elements.forEach((each, index) => { if (place.children[index] !== each) place.insertBefore(each, place.children[index] || null); });
}

function select(label, choices) {
  return el("select", { "aria-label": label }, ...choices.map(([value, words]) => el("option", { value }, words)));
}

function makeChart(tag, state, settings, kind = "figure.card.chart") {
  const value = el("span.reading");
  const place = el("div.plot");
  const zoomOut = el("button.quiet.small", { type: "button", hidden: true }, "all");
  const card = el(kind, { data: { tag } }, el("figcaption", {}, el("span.tag", { title: tag }, tag), zoomOut, value), place);
  let plot = null, loaded = [], shape = "", zoom = null, isLoading = false, data = null, own = [];

  async function refresh() {
    if (isLoading) return;
    isLoading = true;
    const isByStep = settings().axis === "step";
    const query = { tag, count: POINTS, ...(zoom && isByStep ? { first: Math.floor(zoom[0]), last: Math.ceil(zoom[1]) } : {}) };
    try {
      const found = await Promise.all(state.clusters.map(async (name) => [name, await get("points", { cluster: name, ...query })]));
      loaded = found.flatMap(([name, runs]) => Object.entries(runs).sort(([one], [other]) => format.natural(one, other)).map(([run, points]) => ({
        key: `${name}/${run}`, label: label(state, name, run), points })));
      const index = new Map(); // a run has the same colour in all charts
      for (const each of loaded) index.set(each.key, runIndex(state, each.key));
      loaded.forEach((each) => { each.index = index.get(each.key); });
      draw();
      state.onloaded();
    } catch { /* the next look tries again */ } finally { isLoading = false; }
  }

  function draw(isAnew = false) {
    const { axis, smooth, isLog } = settings();
    const shown = loaded.filter((each) => !state.hidden.has(each.key) && each.points[0].length);
    const isDark = state.context.isDark();
    const column = axis === "step" ? 0 : 1;
    const tables = [], series = [];
    own = [];
    for (const each of shown) {
      const [steps, times, values] = each.points;
      const start = times[0];
      const x = column === 0 ? steps : axis === "relative" ? times.map((at) => at - start) : times;
      const y = isLog ? values.map((one) => (one > 0 ? one : null)) : values;
      const colour = format.colour(each.index, isDark), dash = format.dash(each.index);
      const order = sorted(x);
      tables.push([order.map((at) => x[at]), order.map((at) => y[at])]);
      series.push({ label: each.label, colour, dash, alpha: smooth ? 0.25 : 1 });
      own.push({ run: each, isRaw: true });
      if (smooth) {
        tables.push([order.map((at) => x[at]), smoothed(order.map((at) => y[at]), smooth)]);
        series.push({ label: each.label, colour, dash, width: 2 });
        own.push({ run: each, isRaw: false });
      }
    }
    if (!tables.length) { plot?.destroy(); plot = null; data = null; shape = ""; write(value, ""); return; }
    data = uPlot.join(tables);
    const next = JSON.stringify([series, axis, isLog]);
    if (plot && next === shape && !isAnew) {
      plot.setData(data, zoom === null);
      if (zoom) plot.setScale("x", { min: zoom[0], max: zoom[1] });
      tell(null);
      return;
    }
    shape = next;
    plot?.destroy();
    plot = lines(place, {
      width: Math.max(200, place.clientWidth), height: UNTIL_HEIGHT, series, isTime: axis === "time", isLog,
      marks: () => marks(axis), ontell: tell, onzoom, onpick,
    }, data);
    if (zoom) plot.setScale("x", { min: zoom[0], max: zoom[1] });
    tell(null);
  }

  function marks(axis) {
    const first = loaded.find((each) => each.key.startsWith(`${state.name}/`)) || loaded[0];
    if (!first || !state.tags) return [];
    const [steps, times] = first.points;
    const at = (time) => axis === "step" ? stepAt(steps, times, time) : axis === "relative" ? time - times[0] : time;
    const found = state.tags.restarts.filter((each) => each.time >= times[0] - 1).map((each) => ({ x: at(each.time), kind: "restart", words: each.task }));
    for (const each of state.tags.checkpoints) found.push({ x: axis === "step" ? each.step : at(each.time), kind: "checkpoint", words: `checkpoint ${each.step}` });
    return found;
  }

  function tell(index) {
    if (!data) return;
    const parts = [];
    own.forEach((each, position) => {
      if (own.some((other) => other.run === each.run && other.isRaw !== each.isRaw) && each.isRaw) return;
      const column = data[position + 1];
      let at = index === null ? column.length - 1 : index;
      while (at >= 0 && (column[at] === undefined || (index === null && column[at] === null))) at -= 1;
      if (at >= 0) parts.push(`${own.length > 1 ? `${each.run.label} ` : ""}${column[at] === null ? "NaN" : format.number(column[at], 4)}`);
    });
    const where = index === null ? "" : settings().axis === "time" ? `${format.clock(data[0][index])}  ` : settings().axis === "relative" ? `${format.age(data[0][index])}  ` : `step ${format.number(data[0][index])}  `;
    write(value, where + parts.slice(0, 4).join("  ") + (parts.length > 4 ? " …" : ""));
  }

  function onzoom(first, last) {
    zoom = first === null ? null : [first, last];
    zoomOut.hidden = zoom === null;
    refresh();
  }

  function onpick(index) {
    const at = data[0][index];
    const own = loaded.find((each) => each.key.startsWith(`${state.name}/`) && !state.hidden.has(each.key)) || loaded[0];
    const [steps, times] = own.points;
    const { axis } = settings();
    const time = axis === "time" ? at : axis === "relative" ? at + times[0] : timeAt(steps, times, at);
    state.context.go("logs", { at: time.toFixed(3) });
  }

  zoomOut.addEventListener("click", () => onzoom(null));
  return {
    card, refresh, draw, runs: () => loaded.map((each) => ({ key: each.key, label: each.label, colour: format.colour(each.index, state.context.isDark()), dash: format.dash(each.index) })),
    resize: () => { const width = place.clientWidth; if (plot && width > 100 && Math.abs(width - plot.width) > 2) plot.setSize({ width, height: UNTIL_HEIGHT }); },
    reset: () => { zoom = null; zoomOut.hidden = true; },
    destroy: () => plot?.destroy(),
  };
}

function label(state, name, run) {
  if (state.clusters.length === 1) return run === "." ? name : run;
  return run === "." ? name : `${name}/${run}`;
}

function runIndex(state, key) {
  state.order ||= new Map();
  if (!state.order.has(key)) state.order.set(key, state.order.size);
  return state.order.get(key);
}

/** The order in which x rises: wall times may not, after a restart on another clock. */
function sorted(x) {
  const order = x.map((_, index) => index);
  return order.sort((one, other) => x[one] - x[other] || one - other).filter((at, index, all) => index === 0 || x[at] !== x[all[index - 1]]);
}

function smoothed(values, weight) {
  let last = 0, norm = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    last = last * weight + (1 - weight) * value;
    norm = norm * weight + (1 - weight);
    return last / norm;
  });
}

function nearest(list, value) {
  let low = 0, high = list.length - 1;
  while (low < high) { const middle = (low + high) >> 1; if (list[middle] < value) low = middle + 1; else high = middle; }
  return low;
}
const stepAt = (steps, times, time) => steps[nearest(times, time)];
const timeAt = (steps, times, step) => times[nearest(steps, step)];

// -- histograms and images: the samples that are kept, the newest first shown

function sampler(caption, draw) {
  const slider = el("input", { type: "range", min: "0", max: "0", value: "0", step: "1", "aria-label": `Sample of ${caption}` });
  const words = el("span.muted");
  slider.addEventListener("input", () => draw(Number(slider.value)));
  return { row: el("div.row", {}, slider, words), slider, words };
}

function makeHistogram(context, cluster, run, tag, signal) {
  const caption = run === "." ? tag : `${run}/${tag}`;
  const place = el("div.plot");
  const value = el("span.reading");
  let samples = [], plot = null;
  const at = sampler(caption, draw);
  const card = el("figure.card.chart", {}, el("figcaption", {}, el("span.tag", { title: caption }, caption), value), place, at.row);
  function draw(index) {
    const sample = samples[index];
    if (!sample) return;
    const [x, y] = evenBuckets(sample);
    write(at.words, `step ${format.number(sample.step)}`);
    plot?.destroy();
    plot = bars(place, { width: Math.max(200, place.clientWidth), height: 150, colour: format.colour(0, context.isDark()),
      ontell: (each) => write(value, each === null || each === undefined ? "" : `${format.number(x[each])}: ${format.number(y[each])}`) }, [x, y]);
  }
  async function refresh() {
    const isNewest = Number(at.slider.value) === Number(at.slider.max);
    const found = await get("histogram", { cluster, run, tag }, signal).catch(() => null);
    if (!found || (samples.length && found.length && found.at(-1).step === samples.at(-1).step)) return;
    samples = found;
    at.slider.max = String(Math.max(0, samples.length - 1));
    if (isNewest) at.slider.value = at.slider.max;
    draw(Number(at.slider.value));
  }
  return { card, refresh, restyle: () => draw(Number(at.slider.value)) };
}

/** Buckets of equal width from those of the event file, whose widths grow with the value: only so do heights show where
 * the values are. A bucket's count is spread over its width. */
function evenBuckets(sample) {
  const low = sample.low ?? 0, high = sample.high ?? low;
  const width = (high - low) / BUCKETS || 1;
  const y = new Array(high > low ? BUCKETS : 1).fill(0);
  const x = y.map((_, index) => low + width * (index + (high > low ? 0.5 : 0)));
  const last = y.length - 1;
  let before = low;
  sample.limits.forEach((limit, position) => {
    const end = Math.max(before, Math.min(limit ?? high, high));
    const count = sample.counts[position] || 0;
    const first = Math.min(last, Math.max(0, Math.floor((before - low) / width)));
    if (count && end - before <= 0) y[first] += count;
    else if (count) {
      for (let bucket = first; bucket <= last && low + bucket * width < end; bucket++) {
        const share = Math.min(end, low + (bucket + 1) * width) - Math.max(before, low + bucket * width);
        y[bucket] += (count * Math.max(0, share)) / (end - before);
      }
    }
    before = end;
  });
  return [x, y];
}

function makeImage(context, cluster, run, tag, signal) {
  const caption = run === "." ? tag : `${run}/${tag}`;
  const image = el("img", { alt: caption });
  const at = sampler(caption, load);
  const note = el("p.muted.note", { hidden: true }, "This picture is damaged: the browser cannot show it.");
  const card = el("figure.card.image", {}, el("figcaption", {}, el("span.tag", { title: caption }, caption)), image, note, at.row);
  let count = 0, known = "";
  for (const [what, isDamaged] of [["load", false], ["error", true]]) {
    image.addEventListener(what, () => { note.hidden = !isDamaged; image.hidden = isDamaged; });
  }
  async function load(index) {
    const found = await picture({ cluster, run, tag, number: String(index), known }, signal).catch(() => null);
    if (!found) return;
    known = found.about.key;
    const former = image.src;
    image.src = URL.createObjectURL(found.blob);
    if (former) URL.revokeObjectURL(former);
    count = found.about.count;
    at.slider.max = String(Math.max(0, count - 1));
    if (index < 0) at.slider.value = at.slider.max;
    write(at.words, `step ${format.number(found.about.step)}`);
  }
  return { card, refresh: () => (Number(at.slider.value) >= count - 1 ? load(-1) : null) };
}
