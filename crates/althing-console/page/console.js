// Asks for the view once a second and fills the tables. Everything that comes from the node is set as text, never as markup.

const REFRESH_MS = 1000;

const count = (n) => Math.round(n).toLocaleString("en");
const rate = (n) => (n >= 100 || n === 0 ? count(n) : n.toFixed(1));
const seconds = (s) => (s === 0 ? "" : `${s} s`);

/** A time in µs with the unit that suits it. */
function time(us) {
  if (us === 0) return "";
  if (us < 1) return `${Math.round(us * 1000)} ns`;
  if (us < 1000) return `${us.toFixed(us < 10 ? 1 : 0)} µs`;
  if (us < 1e6) return `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms`;
  return `${(us / 1e6).toFixed(1)} s`;
}

// Per table: heading, field, how it is written, and whether anything above zero is a warning.
const COLUMNS = {
  kinds: [
    ["type", "name", String],
    ["live", "live", count],
    ["messages/s", "rate", rate],
    ["handled", "handled", count],
    ["waiting", "depth", count],
    ["oldest", "oldest_s", seconds, true],
    ["p50", "p50_us", time],
    ["p99", "p99_us", time],
    ["failed", "failed", count, true],
    ["restarts", "restarted", count, true],
    ["timed out", "timed_out", count, true],
    ["overloaded", "overloaded", count, true],
    ["missed", "missed", count, true],
  ],
  hot: [["actor", "id", String], ["messages/s", "rate", rate], ["waiting", "depth", count]],
  deep: [["actor", "id", String], ["waiting", "depth", count], ["oldest", "oldest_s", seconds, true]],
  slow: [
    ["type", "actor", String],
    ["message", "message", String],
    ["mean", "mean_us", time],
    ["longest", "max_us", time],
    ["timed", "sampled", count],
  ],
};

function cell(tag, text, ...classes) {
  const element = document.createElement(tag);
  element.textContent = text;
  element.classList.add(...classes);
  return element;
}

function heading([title, , format]) {
  const element = cell("th", title, ...(format === String ? ["text"] : []));
  element.scope = "col";
  return element;
}

function line(columns, entry) {
  const row = document.createElement("tr");
  for (const [, field, format, warns] of columns) {
    const value = entry[field];
    const classes = format === String ? ["text"] : warns && value > 0 ? ["warn"] : [];
    row.append(cell("td", format(value), ...classes));
  }
  return row;
}

function fill(id, entries) {
  const columns = COLUMNS[id];
  const head = document.createElement("thead");
  const titles = document.createElement("tr");
  titles.append(...columns.map(heading));
  head.append(titles);
  const body = document.createElement("tbody");
  body.append(...entries.map((entry) => line(columns, entry)));
  if (entries.length === 0) {
    const none = cell("td", "none", "none");
    none.colSpan = columns.length;
    const row = document.createElement("tr");
    row.append(none);
    body.append(row);
  }
  document.getElementById(id).replaceChildren(head, body);
}

function show(view) {
  document.title = `${view.node} · Althing console`;
  document.getElementById("node").textContent =
    `node ${view.node}, up ${count(view.uptime_s)} s, ${count(view.visited)} actors looked at`;
  for (const id of Object.keys(COLUMNS)) fill(id, view[id]);
}

function tell(state, lost) {
  const element = document.getElementById("state");
  // Set only on change: a screen reader would read it out each second.
  if (element.textContent !== state) element.textContent = state;
  element.classList.toggle("lost", lost);
}

async function refresh() {
  try {
    const answer = await fetch("/console/api", { signal: AbortSignal.timeout(5 * REFRESH_MS) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
    tell("live", false);
  } catch (error) {
    tell(`no answer (${error.message}), trying again`, true);
  }
  setTimeout(refresh, REFRESH_MS);
}

refresh();
