// Elements from text: every word of a cluster reaches the page through textContent or an attribute, never as markup.

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
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Sets a text only where it is another one: a thousand tiles are updated at each change. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function mark(node, name, value) {
  if (node.dataset[name] !== value) node.dataset[name] = value;
}

export function replace(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
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
  return (...values) => { clearTimeout(timer); timer = setTimeout(() => f(...values), ms); };
}

export function toast(text, isBad = false) {
  const place = document.getElementById("toast");
  const note = el("div.note", {}, text);
  if (isBad) note.classList.add("bad");
  place.append(note);
  setTimeout(() => note.remove(), 6000);
}
