// Tables and how their cells are written. Everything that comes from the node is set as text, never as markup.

export const REFRESH_MS = 1000;

export const count = (n) => Math.round(n).toLocaleString("en");
const rate = (n) => (n >= 100 || n === 0 ? count(n) : n.toFixed(1));
const seconds = (s) => (s === 0 ? "" : `${s < 10 && s % 1 ? s.toFixed(1) : count(s)} s`);
const list = (names) => names.join(", ");
const yes = (is) => (is ? "yes" : "");

/** A time in µs with the unit that suits it. */
function time(us) {
  if (us === 0) return "";
  if (us < 1) return `${Math.round(us * 1000)} ns`;
  if (us < 1000) return `${us.toFixed(us < 10 ? 1 : 0)} µs`;
  if (us < 1e6) return `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms`;
  return `${(us / 1e6).toFixed(1)} s`;
}

/** A field of the times within a window. */
const within = (window, field) => (entry) => entry[window][field];
const times = [
  ["p50", within("short", "p50_us"), time],
  ["p99", within("short", "p99_us"), time],
  ["p50, minute", within("long", "p50_us"), time],
  ["p99, minute", within("long", "p99_us"), time],
];

// Per table: heading, field or what yields it, how it is written, and whether anything but nothing is a warning.
const COLUMNS = {
  stuck: [
    ["actor", "id", String],
    ["runs", "activity", String],
    ["for at least", "at_least_s", seconds, true],
    ["waits for", "waits_for", list],
    ["blocks a thread", "blocks_thread", yes, true],
    ["behind it", "depth", count],
  ],
  nodes: [
    ["node", "name", String],
    ["state", "state", String],
    ["trouble", "trouble", (why) => why ?? "", true],
    ["buckets", "buckets", count],
    ["coming", "arriving", count],
    ["going", "departing", count],
    ["leaves", "is_leaving", yes, true],
    ["guest", "is_guest", yes, true],
    ["labels", "labels", String],
    ["actors", "actors", count],
    ["waiting", "waiting", count],
    ["clients", "clients", count],
    ["address", "address", String],
  ],
  kinds: [
    ["type", "name", String],
    ["live", "live", count],
    ["messages/s", "rate", rate],
    ["handled", "handled", count],
    ["waiting", "depth", count],
    ["oldest", "oldest_s", seconds, true],
    ...times,
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
    ...times,
    ["longest, minute", within("long", "max_us"), time],
    ["timed, minute", within("long", "timed"), count],
  ],
  topics: [
    ["topic", "name", String],
    ["events", "event", String],
    ["subscribers", "subscribers", count],
    ["last", "last", count],
    ["kept", "kept", count],
    ["waiting", "waiting", count],
    ["missed", "missed", count, true],
    ["owner", "owner", String],
  ],
  tree: [
    ["actor", "id", String],
    ["children", "children", count],
    ["in memory", "is_active", yes],
    ["restarts", "restarts", count, true],
    ["last failure", "failed", String, true],
  ],
};

const TEXTS = [String, list];

function cell(tag, text, ...classes) {
  const element = document.createElement(tag);
  element.textContent = text;
  element.classList.add(...classes);
  return element;
}

function heading([title, , format]) {
  const element = cell("th", title, ...(TEXTS.includes(format) ? ["text"] : []));
  element.scope = "col";
  return element;
}

function line(columns, entry) {
  const row = document.createElement("tr");
  for (const [index, [, field, format, warns]] of columns.entries()) {
    const value = typeof field === "function" ? field(entry) : entry[field];
    const classes = TEXTS.includes(format) ? ["text"] : [];
    if (warns && (value === true || value > 0 || (format === String && value !== ""))) {
      classes.push("warn");
    }
    const element = cell(index === 0 ? "th" : "td", format(value), ...classes);
    if (index === 0) {
      element.scope = "row";
      // Deeper ones stand further in; a class each, because the policy forbids inline styles.
      if (entry.depth > 0 && "parent" in entry) element.classList.add(`in-${Math.min(entry.depth, 8)}`);
    }
    row.append(element);
  }
  return row;
}

/** Writes a table anew. */
export function fill(id, entries) {
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

/** Asks the node. */
export async function ask(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(5 * REFRESH_MS) });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}
