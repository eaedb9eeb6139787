// Bytes a second, between two looks at the counts that tasks report.

/** Keeps the counts of the last look. `take(counts)` gets {task: {at, generation, sent, received, rows}}; `of(task)` is
 * {sent, received, rows: {variable: count}} a second, undefined until there were two looks at the same process. */
export function rates() {
  let before = {}, found = new Map();
  function take(counts) {
    const next = new Map();
    for (const [name, own] of Object.entries(counts)) {
      const former = before[name];
      if (!former || former.generation !== own.generation || own.at <= former.at) continue;
      const rate = (key) => Math.max(0, (own[key] - former[key]) / (own.at - former.at));
      const rows = Object.fromEntries(Object.entries(own.rows || {}).map(([each, count]) =>
        [each, Math.max(0, (count - (former.rows?.[each] || 0)) / (own.at - former.at))]));
      next.set(name, { sent: rate("sent"), received: rate("received"), rows });
    }
    before = counts;
    found = next;
  }
  return { take, of: (name) => found.get(name), all: () => found };
}
