// The parts of the page that are asked for by name: topics and the tree of supervision. Nothing is asked while a part is closed.

import { ask, count, fill } from "/console/tables.js";

const panels = {
  topics: {
    url: (text, after) => `/console/api/topics?${new URLSearchParams({ text, after })}`,
    rows: (answer) => answer.topics.map((topic) => ({ ...topic, owner: owner(topic) })),
    last: (answer) => answer.topics.at(-1)?.name ?? "",
  },
  tree: {
    url: (text) => `/console/api/tree?${new URLSearchParams({ text })}`,
    rows: (answer) => indented(answer.actors),
    last: () => "",
  },
};

const element = (id) => document.getElementById(id);
/** Where the page of topics begins: after this name. */
let after = "";

function owner({ epoch, is_owned }) {
  if (epoch === null) return "";
  return is_owned ? `epoch ${epoch}` : `none (last epoch ${epoch})`;
}

/** Orders actors so that children follow their parent, each with its depth. */
function indented(actors) {
  const known = new Set(actors.map(({ id }) => id));
  const children = new Map();
  for (const actor of actors) {
    const parent = known.has(actor.parent) ? actor.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), actor]);
  }
  const rows = [];
  const add = (parent, depth) => {
    for (const actor of children.get(parent) ?? []) {
      rows.push({ ...actor, depth, failed: failure(actor) });
      add(actor.id, depth + 1);
    }
  };
  add(null, 0);
  return rows;
}

const failure = ({ failure: text, failed_at_s }) =>
  text === null ? "" : `${text} (at ${count(failed_at_s)} s)`;

async function look(name) {
  const panel = panels[name];
  const text = element(`${name}-text`).value;
  const answer = await ask(panel.url(text, after));
  // What was typed meanwhile gets an answer of its own.
  if (text !== element(`${name}-text`).value) return;
  fill(name, panel.rows(answer));
  const left = element(`${name}-left`);
  const said = answer.left > 0 ? `${count(answer.left)} more` : "";
  if (left.textContent !== said) left.textContent = said;
  if (name === "topics") {
    const next = element("topics-next");
    next.hidden = answer.left === 0 && after === "";
    next.textContent = answer.left > 0 ? "Next page" : "First page";
    next.dataset.after = answer.left > 0 ? panel.last(answer) : "";
  }
}

/** Brings the parts that are open up to date. */
export async function refreshPanels() {
  const open = Object.keys(panels).filter((name) => element(`${name}-panel`).open);
  await Promise.all(open.map(look));
}

/** Opens a part and puts the focus into its search. */
export function search(name) {
  element(`${name}-panel`).open = true;
  element(`${name}-text`).focus();
}

/** Makes the parts look as soon as they are opened, searched or paged; `failed` is told what goes wrong. */
export function listen(failed) {
  for (const name of Object.keys(panels)) {
    const again = () => look(name).catch(failed);
    element(`${name}-panel`).addEventListener("toggle", ({ target }) => target.open && again());
    element(`${name}-text`).addEventListener("input", () => {
      if (name === "topics") after = "";
      again();
    });
  }
  element("topics-next").addEventListener("click", ({ target }) => {
    after = target.dataset.after;
    look("topics").catch(failed);
  });
}
