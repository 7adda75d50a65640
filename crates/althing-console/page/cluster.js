// Asks for the nodes once a second and fills the table, unless out of sight.

import { REFRESH_MS, ask, count, fill } from "/console/cluster/tables.js";

function tell(state, lost) {
  const element = document.getElementById("state");
  // Set only on change: a screen reader would read it out each second.
  if (element.textContent !== state) element.textContent = state;
  element.classList.toggle("lost", lost);
}

async function refresh() {
  try {
    if (!document.hidden) {
      const view = await ask("/console/cluster/api");
      document.getElementById("view").textContent = `view ${count(view.number)}`;
      fill("nodes", view.nodes);
      tell(view.trouble ? `the cluster does not answer (${view.trouble})` : "live", Boolean(view.trouble));
    }
  } catch (error) {
    tell(`no answer (${error.message}), trying again`, true);
  }
  setTimeout(refresh, REFRESH_MS);
}

refresh();
