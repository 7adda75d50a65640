// @ts-check
// Ties the parts together: city, camera, feed, fleet, painter, panels; pointer and keys.

import { Camera, project } from "./camera.js";
import { Feed } from "./feed.js";
import { Fleet } from "./fleet.js";
import { Painter } from "./painter.js";
import { hideCard, logCrossing, noteOnCard, showCard, showFeed, showNumbers, showOperators } from "./panels.js";

const TRAIL_EVERY_MS = 3_000;
const PAN_STEP = 80;
const CLICK_RADIUS = 18;
const WORLD = [-20, 35, 40, 70];

const canvas = /** @type {HTMLCanvasElement} */ (document.getElementById("map"));
const city = await (await fetch("/city.json")).json();
const [camera, fleet, painter] = [new Camera(), new Fleet(), new Painter(canvas, city)];
/** @type {Set<string>} */ const hidden = new Set();
/** @type {any} */ let overview;
/** @type {"wait" | "live" | "lost"} */ let link = "wait";
/** @type {string | undefined} */ let selected;
/** @type {import("./camera.js").Point[]} */ let trail = [];
let trailAsked = 0;

const feed = new Feed({
  positions: (sightings) => fleet.see(sightings, performance.now()),
  asleep: (ids) => fleet.sleep(ids),
  crossing: (crossing) => logCrossing(crossing, select),
  overview: (now) => {
    overview = now;
    showOperators(overview);
    showFeed(link, overview);
  },
  link: (state) => {
    link = state;
    showFeed(link, overview);
  },
});

function resize() {
  Object.assign(camera, { width: canvas.clientWidth, height: canvas.clientHeight });
  feed.look(camera.bbox());
}

function fit() {
  Object.assign(camera, { width: canvas.clientWidth, height: canvas.clientHeight });
  const isWide = camera.width > 860;
  camera.fit(city.bounds ?? WORLD, { left: 20, right: isWide ? 360 : 20, top: isWide ? 90 : 150, bottom: isWide ? 60 : 260 });
}

/** @param {string} id */
function select(id) {
  selected = id;
  trail = [];
  trailAsked = 0;
  noteOnCard("");
}

function deselect() {
  selected = undefined;
  trail = [];
  hideCard();
}

/** The trail and what the twin remembers, asked from the vehicle itself. @param {string} id */
async function askTrail(id) {
  trailAsked = performance.now();
  const answer = await fetch(`/trail?id=${encodeURIComponent(id)}`);
  const body = await answer.json();
  if (id !== selected) return;
  if (!answer.ok) return noteOnCard(body.detail);
  trail = body.trail.map((/** @type {[number, number, number]} */ [lat, lon]) => project(lon, lat));
  const inside = body.inside.length ? `in ${body.inside.join(", ")} · ` : "";
  noteOnCard(`${inside}${body.positions.toLocaleString("en-GB")} positions, trail of ${body.trail.length}`);
}

/** @param {string} text */
async function findVehicle(text) {
  const answer = await fetch(`/vehicle?id=${encodeURIComponent(text.trim())}`);
  const body = await answer.json();
  if (!answer.ok) {
    showFeed(link, overview);
    return body.detail;
  }
  camera.centre = project(body.longitude, body.latitude);
  camera.scale = Math.max(camera.scale, 6_500_000);
  feed.look(camera.bbox());
  fleet.see([[body.id, body.latitude, body.longitude, body.heading_deg, Math.round(body.speed_mps * 100), body.delay_s, body.mode, body.line, body.direction, body.at_ms]], performance.now());
  select(body.id);
  return "";
}

function frame() {
  const now = performance.now();
  fleet.forget(now);
  let shown = 0;
  const vehicles = [];
  for (const vehicle of fleet.vehicles.values()) {
    const at = fleet.drawnAt(vehicle, now);
    const [x, y] = camera.toScreen(at);
    if (x >= 0 && y >= 0 && x <= camera.width && y <= camera.height && !hidden.has(vehicle.mode)) shown += 1;
    vehicles.push({ vehicle, at });
  }
  const chosen = selected ? fleet.vehicles.get(selected) : undefined;
  const ends = chosen && trail.length ? [...trail, fleet.drawnAt(chosen, now)] : trail;
  painter.draw(camera, { vehicles, hidden, selected, trail: ends });
  if (chosen) {
    const operator = overview?.organizations.find((/** @type {any} */ one) => one.operator === Number(chosen.id.split("/")[0]));
    showCard(chosen, operator?.name ?? "", now);
  }
  if (selected && now - trailAsked > TRAIL_EVERY_MS) askTrail(selected).catch(() => noteOnCard("server lost"));
  showNumbers(overview, shown);
  document.documentElement.dataset.shown = String(shown);
  requestAnimationFrame(frame);
}

/** @param {number} px @param {number} py */
function vehicleAt(px, py) {
  let [best, distance] = ["", CLICK_RADIUS];
  for (const vehicle of fleet.vehicles.values()) {
    if (hidden.has(vehicle.mode)) continue;
    const [x, y] = camera.toScreen(fleet.drawnAt(vehicle, performance.now()));
    const away = Math.hypot(x - px, y - py);
    if (away < distance) [best, distance] = [vehicle.id, away];
  }
  return best;
}

/** @type {Map<number, { x: number, y: number }>} */ const pointers = new Map();
let dragged = 0;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  dragged = 0;
});
canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const now = { x: event.clientX, y: event.clientY };
  const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
  if (other) {
    const spread = (/** @type {{ x: number, y: number }} */ point) => Math.hypot(point.x - other.x, point.y - other.y);
    camera.zoom(spread(now) / Math.max(1, spread(before)), (now.x + other.x) / 2, (now.y + other.y) / 2);
  } else {
    camera.pan(now.x - before.x, now.y - before.y);
  }
  dragged += Math.hypot(now.x - before.x, now.y - before.y);
  pointers.set(event.pointerId, now);
  feed.look(camera.bbox());
});
canvas.addEventListener("pointerup", (event) => {
  pointers.delete(event.pointerId);
  if (dragged > 5) return;
  const id = vehicleAt(event.clientX, event.clientY);
  if (id) select(id);
  else deselect();
});
canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  camera.zoom(Math.exp(-event.deltaY / 500), event.clientX, event.clientY);
  feed.look(camera.bbox());
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  /** @type {Record<string, () => void>} */ const keys = {
    ArrowLeft: () => camera.pan(PAN_STEP, 0), ArrowRight: () => camera.pan(-PAN_STEP, 0),
    ArrowUp: () => camera.pan(0, PAN_STEP), ArrowDown: () => camera.pan(0, -PAN_STEP),
    "+": () => camera.zoom(1.4), "=": () => camera.zoom(1.4), "-": () => camera.zoom(1 / 1.4),
    "0": fit, Escape: deselect,
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
  feed.look(camera.bbox());
});

document.getElementById("card-close")?.addEventListener("click", deselect);
document.getElementById("find")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const input = /** @type {HTMLInputElement} */ (document.getElementById("find-id"));
  findVehicle(input.value)
    .then((trouble) => input.setCustomValidity(trouble), () => input.setCustomValidity("server lost"))
    .finally(() => input.reportValidity());
});
document.getElementById("find-id")?.addEventListener("input", (event) => {
  /** @type {HTMLInputElement} */ (event.target).setCustomValidity("");
});
for (const button of document.querySelectorAll("#legend [data-mode]")) {
  button.addEventListener("click", () => {
    const mode = /** @type {HTMLElement} */ (button).dataset.mode ?? "";
    if (!hidden.delete(mode)) hidden.add(mode);
    button.setAttribute("aria-pressed", String(!hidden.has(mode)));
  });
}

/** @param {string} theme */
function useTheme(theme) {
  document.documentElement.dataset.theme = theme;
  painter.readColours();
}
const dark = matchMedia("(prefers-color-scheme: dark)");
useTheme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => useTheme(dark.matches ? "dark" : "light"));
document.getElementById("theme")?.addEventListener("click", () => {
  useTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
});

const title = document.getElementById("city");
if (title) title.textContent = city.name ?? "Real-time map";
document.title = `${city.name ?? "Vehicles"} · real-time map`;
fit();
resize();
addEventListener("resize", resize);
requestAnimationFrame(frame);
