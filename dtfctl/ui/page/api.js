// Requests to the server that the page came from. The token stands in the page's address and goes along in a header.

const token = new URLSearchParams(location.search).get("token") || "";
const headers = { authorization: `Bearer ${token}` };

function address(path, query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "") parameters.append(name, each);
    }
  }
  const text = parameters.toString();
  return `/api/${path}${text ? `?${text}` : ""}`;
}

async function answered(response) {
  if (response.ok) return response;
  let words = `${response.status} ${response.statusText}`;
  try { words = (await response.json()).error || words; } catch { /* no JSON: the status says enough */ }
  throw Object.assign(new Error(words), { status: response.status });
}

export async function get(path, query, signal) {
  return (await answered(await fetch(address(path, query), { headers, signal }))).json();
}

/** A picture, or null where the one of `query.known` is still the same. */
export async function picture(query, signal) {
  const response = await answered(await fetch(address("image", query), { headers, signal }));
  if (response.status === 204) return null;
  return { blob: await response.blob(), about: JSON.parse(response.headers.get("x-image")) };
}

export async function act(action) {
  const body = JSON.stringify(action);
  const options = { method: "POST", body, headers: { ...headers, "content-type": "application/json" } };
  return (await answered(await fetch("/api/act", options))).json();
}

/** Calls `take` with each document of a stream of JSON lines, until its end. */
export async function stream(path, query, signal, take) {
  const response = await answered(await fetch(address(path, query), { headers, signal }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) take(JSON.parse(line));
  }
}
