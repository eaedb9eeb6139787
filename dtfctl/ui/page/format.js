// Numbers and times for people.

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (count < 1024) return `${count >= 10 || unit === "B" ? Math.round(count) : count.toFixed(1)} ${unit}`;
    count /= 1024;
  }
  return `${count.toFixed(1)} TiB`;
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e7 || Math.abs(value) < 1e-3)) return value.toExponential(2);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

export function age(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  seconds = Math.max(0, seconds);
  for (const [unit, letter] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= 2 * unit) return `${Math.round(seconds / unit)} ${letter}`;
  }
  return `${Math.round(seconds)} s`;
}

const pad = (value, width = 2) => String(value).padStart(width, "0");

export function clock(wall, hasMs = false) {
  const date = new Date(wall * 1000);
  const text = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return hasMs ? `${text}.${pad(date.getMilliseconds(), 3)}` : text;
}

export function day(wall) {
  const date = new Date(wall * 1000);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${clock(wall)}`;
}

export const percent = (part) => `${Math.round(100 * part)} %`;

/** Names in the order of their numbers: worker:2 before worker:10. */
export const natural = (one, other) => one.localeCompare(other, "en", { numeric: true });

// Six colours that stay apart for each kind of colour blindness, each with a contrast of 3 to a card or more
// (tests/dtfctl/test_page_colours.py). More lines have the same colours again, with dashes.
const LIGHT = ["#2447d6", "#a33208", "#12995a", "#641c76", "#e354be", "#202833"];
const DARK = ["#8296f2", "#f07836", "#3ad1aa", "#7f52e8", "#f9bd1e", "#e5e8f1"];
const DASHES = ["solid", "dashed", "dotted"];

/** A colour for the n-th of something, in the present theme. */
export function colour(index, isDark) {
  const colours = isDark ? DARK : LIGHT;
  return colours[index % colours.length];
}

/** The style of the n-th line: as CSS names it. */
export const dash = (index) => DASHES[Math.floor(index / LIGHT.length) % DASHES.length];

export function hash(text) {
  let found = 7;
  for (const letter of text) found = (found * 31 + letter.codePointAt(0)) >>> 0;
  return found;
}
