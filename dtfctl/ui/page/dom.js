// Elements from text: every word of a cluster reaches the page through textContent or an attribute, never as markup.

// Control characters, and those that turn the direction of text: as wording.py spells them for terminals.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const SHOWN = new Set(["title", "aria-label", "alt", "placeholder"]);

/** A text in which no character acts on others: \x1b and \u202e are spelled. */
export function spelled(text) {
  return String(text).replace(CONTROL, (sign) => {
    const code = sign.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

const present = (children) => children.filter((child) => child !== null && child !== undefined)
  .map((child) => (child instanceof Node ? child : spelled(child)));

/** el("p.note", {title: "x", onclick: f}, "text", child): an element. Children that are null are left out. */
export function el(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, SHOWN.has(name) ? spelled(value) : value);
  }
  element.append(...present(children));
  return element;
}

/** Sets a text only where it is another one: a thousand tiles are updated at each change. */
export function write(node, text) {
  const shown = spelled(text);
  if (node.textContent !== shown) node.textContent = shown;
}

export function mark(node, name, value) {
  if (node.dataset[name] !== value) node.dataset[name] = value;
}

export function replace(node, ...children) {
  node.replaceChildren(...present(children));
}

/** Calls `f` at most once in a frame, with the last arguments. */
export function framed(f) {
  let waiting = null;
  return (...values) => {
    if (waiting === null) requestAnimationFrame(() => { const last = waiting; waiting = null; f(...last); });
    waiting = values;
  };
}

export function delayed(f, ms) {
  let timer = 0;
  const call = (...values) => { clearTimeout(timer); timer = setTimeout(() => f(...values), ms); };
  call.cancel = () => clearTimeout(timer);
  return call;
}

export function toast(text, isBad = false) {
  const place = document.getElementById("toast");
  const note = el("div.note", {}, text);
  if (isBad) note.classList.add("bad");
  place.append(note);
  setTimeout(() => note.remove(), 6000);
}
