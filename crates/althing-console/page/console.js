// Asks for the view once a second and fills the tables, unless paused or out of sight.

import { REFRESH_MS, ask, count, fill } from "/console/tables.js";
import { listen, refreshPanels, search } from "/console/search.js";

const TABLES = ["stuck", "kinds", "hot", "deep", "slow"];
const pause = document.getElementById("pause");

function show(view) {
  document.title = `${view.node} · Althing console`;
  document.getElementById("node").textContent =
    `node ${view.node}, up ${count(view.uptime_s)} s, ${count(view.visited)} actors looked at`;
  document.getElementById("windows").textContent =
    `p50 and p99 are of the last ${count(view.short_s)} s; those of the minute, of the last ${count(view.long_s)} s.`;
  for (const id of TABLES) fill(id, view[id]);
}

function tell(state, lost) {
  const element = document.getElementById("state");
  // Set only on change: a screen reader would read it out each second.
  if (element.textContent !== state) element.textContent = state;
  element.classList.toggle("lost", lost);
}

const failed = (error) => tell(`no answer (${error.message}), trying again`, true);
const isPaused = () => pause.getAttribute("aria-pressed") === "true";

function togglePause() {
  pause.setAttribute("aria-pressed", String(!isPaused()));
  tell(isPaused() ? "paused" : "live", false);
}

async function refresh() {
  try {
    if (!isPaused() && !document.hidden) {
      show(await ask("/console/api"));
      await refreshPanels();
      if (!isPaused()) tell("live", false);
    }
  } catch (error) {
    failed(error);
  }
  setTimeout(refresh, REFRESH_MS);
}

const KEYS = { p: togglePause, t: () => search("topics"), s: () => search("tree") };

addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement;
  if (isTyping && event.key === "Escape") event.target.blur();
  const act = KEYS[event.key];
  if (!act || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  // Or the key would be typed into the search that it opens.
  event.preventDefault();
  act();
});
pause.addEventListener("click", togglePause);
listen(failed);
refresh();
