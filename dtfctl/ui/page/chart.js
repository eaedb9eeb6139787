// Charts by uPlot, in the page's colours: zoomed by dragging, reset by a double click, with marks on the time axis.


/* global uPlot */

const DASHES = { dashed: [8, 4], dotted: [2, 3] };

export function theme() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return { text: value("--muted"), grid: value("--grid"), bad: value("--bad"), mark: value("--accent"), card: value("--card") };
}

function axis(colours, more = {}) {
  return {
    stroke: colours.text, grid: { stroke: colours.grid, width: 1 }, ticks: { stroke: colours.grid, width: 1, size: 4 },
    font: "11px system-ui, sans-serif", size: 26, gap: 4, ...more,
  };
}

function short(value) {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(1).replace("e-", "e−");
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= unit) return `${Number((value / (unit === 1e4 ? 1e3 : unit)).toPrecision(4))}${letter}`;
  }
  return String(Number(value.toPrecision(4)));
}

/** Marks: [{x, kind: "restart" | "checkpoint", words}]. Restarts are dashed lines, checkpoints ticks at the bottom. */
function drawMarks(u, marks, colours) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const ratio = devicePixelRatio || 1;
  for (const mark of marks) {
    const x = Math.round(u.valToPos(mark.x, "x", true));
    if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
    ctx.beginPath();
    if (mark.kind === "restart") {
      ctx.setLineDash([4 * ratio, 3 * ratio]);
      ctx.strokeStyle = colours.bad;
      ctx.lineWidth = ratio;
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    } else {
      const bottom = bbox.top + bbox.height;
      ctx.setLineDash([]);
      ctx.fillStyle = colours.mark;
      ctx.globalAlpha = 0.75;
      ctx.moveTo(x, bottom - 6 * ratio);
      ctx.lineTo(x - 3 * ratio, bottom);
      ctx.lineTo(x + 3 * ratio, bottom);
      ctx.fill();
      ctx.globalAlpha = 1;
    }
  }
  ctx.restore();
}

/**
 * A chart of lines. `settings`: {width, height, series: [{label, colour, dash, width, alpha}], isTime, isLog, marks(),
 * ontell(index) at the cursor, onzoom(min, max) or (null) for all, onpick(index)}.
 */
export function lines(place, settings, data) {
  const colours = theme();
  let downAt = null;
  const options = {
    width: settings.width, height: settings.height, legend: { show: false }, padding: [10, 16, 0, 0],
    scales: { x: { time: settings.isTime, range: (_, low, high) => resolved(low, high) }, y: settings.isLog ? { distr: 3, log: 10 } : { range: padded } },
    axes: [axis(colours, settings.isTime ? {} : { values: (_, all) => all.map(short) }),
      axis(colours, { size: 54, values: (_, all) => all.map(short) })],
    series: [{}, ...settings.series.map((each) => ({
      label: each.label, stroke: each.colour, dash: DASHES[each.dash], width: each.width || 1.6, alpha: each.alpha || 1, points: { size: 4 }, spanGaps: false,
    }))],
    cursor: { drag: { x: true, y: false, setScale: false }, focus: { prox: 30 }, points: { size: 6 } },
    focus: { alpha: 0.35 },
    hooks: {
      drawAxes: [(u) => drawMarks(u, settings.marks(), colours)],
      setCursor: [(u) => settings.ontell(u.cursor.idx ?? null)],
      setSelect: [(u) => {
        if (u.select.width > 4) {
          const first = u.posToVal(u.select.left, "x"), last = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          u.setScale("x", { min: first, max: last });
          settings.onzoom(first, last);
        }
      }],
      ready: [(u) => {
        u.over.addEventListener("mousedown", (event) => { downAt = event.clientX; });
        u.over.addEventListener("click", (event) => {
          const idx = u.cursor.idx;
          if (downAt !== null && Math.abs(event.clientX - downAt) < 4 && idx !== null && idx !== undefined) settings.onpick(idx);
        });
        u.over.addEventListener("dblclick", () => settings.onzoom(null));
      }],
    },
  };
  return new uPlot(options, data, place);
}

function padded(_, low, high) {
  if (low === null || high === null) return [0, 1];
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return resolved(low - room, high + room);
}

/** A range whose ends are far enough apart for ticks between them: numbers have 16 digits only. */
function resolved(low, high) {
  if (low === null || high === null) return [low, high];
  const room = Math.max(Math.abs(low), Math.abs(high)) * 1e-9;
  return high - low > room ? [low, high] : [low - (room || 0.5), high + (room || 0.5)];
}

/** A histogram: bars at the middles of buckets. */
export function bars(place, settings, data) {
  const colours = theme();
  const options = {
    width: settings.width, height: settings.height, legend: { show: false }, padding: [10, 16, 0, 0],
    scales: { x: { time: false, range: (_, low, high) => resolved(low, high) }, y: { range: (_, low, high) => [0, (high || 1) * 1.08] } },
    axes: [axis(colours, { values: (_, all) => all.map(short) }), axis(colours, { size: 54, values: (_, all) => all.map(short) })],
    series: [{}, { label: "count", stroke: settings.colour, fill: settings.colour, width: 0, points: { show: false },
      paths: uPlot.paths.bars({ size: [0.96, 60] }) }],
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    hooks: { setCursor: [(u) => settings.ontell(u.cursor.idx ?? null)] },
  };
  return new uPlot(options, data, place);
}

