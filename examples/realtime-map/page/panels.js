// @ts-check
// The panels beside the map: numbers, operators, the log of fences, the card of one vehicle. Text only ever enters as text.

const LOG_MAX = 60;

const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const number = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** @param {string} name @param {string} text @param {string} [kind] */
function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

/** The link to this server first, then the server's link to its broker. @param {"wait" | "live" | "lost"} link @param {any} overview */
export function showFeed(link, overview) {
  const feed = find("feed");
  const broker = overview?.feed;
  if (link !== "live") {
    feed.dataset.state = link;
    feed.textContent = link === "lost" ? "server lost, trying again" : "connecting";
  } else if (broker && !broker.connected) {
    feed.dataset.state = "lost";
    const pause = broker.pause_ms === null ? "" : ` after ${(broker.pause_ms / 1000).toFixed(1)} s`;
    feed.textContent = `broker lost, trying again${pause} (${broker.trouble ?? broker.broker})`;
  } else {
    feed.dataset.state = broker ? "live" : "wait";
    feed.textContent = broker ? `live from ${broker.broker}` : "connecting";
  }
}

/** @param {any} overview @param {number} shown */
export function showNumbers(overview, shown) {
  find("awake").textContent = overview ? number.format(overview.awake) : "–";
  find("rate").textContent = overview ? number.format(overview.positions_per_second) : "–";
  find("shown").textContent = number.format(shown);
}

/** @param {any} overview */
export function showOperators(overview) {
  const all = [...overview.organizations].sort((a, b) => b.awake - a.awake);
  const most = Math.max(1, ...all.map((one) => one.awake));
  find("operators").replaceChildren(...all.map((one) => {
    const row = document.createElement("li");
    const bar = document.createElement("progress");
    Object.assign(bar, { max: most, value: one.awake });
    bar.setAttribute("aria-hidden", "true");
    const detail = `${number.format(one.moving)} moving at ${number.format(one.speed_mps * 3.6)} km/h · ${number.format(one.late)} late`;
    row.append(element("b", one.name), element("span", number.format(one.awake), "count"), bar, element("small", detail));
    return row;
  }));
}

/** @param {any} crossing @param {(id: string) => void} select */
export function logCrossing(crossing, select) {
  const log = find("log");
  const key = `${crossing.vehicle} ${crossing.at_ms} ${crossing.fence}`;
  // A stream that is opened again repeats the last crossings.
  for (const row of log.children) if (/** @type {HTMLElement} */ (row).dataset.key === key) return;
  const row = document.createElement("li");
  row.dataset.key = key;
  row.dataset.at = String(crossing.at_ms);
  const way = element("span", crossing.crossing === "enter" ? "→" : "←", crossing.crossing);
  way.title = crossing.crossing;
  const entered = crossing.crossing === "enter" ? "enters" : "leaves";
  const who = element("button", `${crossing.line} ${entered} ${crossing.name} (${crossing.inside} in)`);
  who.addEventListener("click", () => select(crossing.vehicle));
  const time = /** @type {HTMLTimeElement} */ (element("time", clock.format(crossing.at_ms)));
  row.append(way, who, time);
  const older = [...log.children].find((other) => Number(/** @type {HTMLElement} */ (other).dataset.at) <= crossing.at_ms);
  log.insertBefore(row, older ?? null);
  while (log.children.length > LOG_MAX) log.lastElementChild?.remove();
}

/** @param {any} vehicle @param {string} operator @param {number} now */
export function showCard(vehicle, operator, now) {
  find("card").hidden = false;
  const badge = find("card-line");
  badge.textContent = vehicle.line || "–";
  badge.dataset.mode = vehicle.mode;
  find("card-id").textContent = vehicle.id;
  find("card-operator").textContent = `${operator} · ${vehicle.mode}`;
  find("card-speed").textContent = `${number.format(vehicle.speed * 3.6)} km/h`;
  const minutes = Math.round(vehicle.delay / 60);
  find("card-delay").textContent = minutes === 0 ? "on time" : minutes > 0 ? `${minutes} min early` : `${-minutes} min late`;
  find("card-age").textContent = `${number.format(Math.max(0, (now - vehicle.heardAt) / 1_000))} s ago`;
  const speeds = vehicle.speeds;
  const top = Math.max(5, ...speeds);
  const points = speeds.map((/** @type {number} */ speed, /** @type {number} */ i) =>
    `${(i / Math.max(1, speeds.length - 1) * 240).toFixed(1)},${(46 - speed / top * 42).toFixed(1)}`);
  document.querySelector("#card-chart path")?.setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
}

/** @param {string} text */
export function noteOnCard(text) {
  find("card-note").textContent = text;
}

export function hideCard() {
  find("card").hidden = true;
}
