// @ts-check
// Draws the city, its routes and fences, the trail and the vehicles. The city is drawn into a canvas of its own and only
// again when the camera moves; vehicles are drawn each frame.

import { project } from "./camera.js";

/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./camera.js").Point} Point */
/** @typedef {Float64Array} Line  x and y in turn */

const MODES = ["bus", "tram", "metro", "train", "ferry", "other"];

/** @param {number[]} units hundred-thousandths of a degree, lon and lat in turn @returns {Line} */
function toLine(units) {
  const line = new Float64Array(units.length);
  for (let i = 0; i < units.length; i += 2) {
    const point = project(units[i] / 1e5, units[i + 1] / 1e5);
    line[i] = point.x;
    line[i + 1] = point.y;
  }
  return line;
}

export class Painter {
  #canvas;
  #context;
  #ground = document.createElement("canvas");
  #groundKey = "";
  #theme = "";
  /** @type {Record<string, string>} */ #colours = {};
  #city;

  /** @param {HTMLCanvasElement} canvas @param {any} city */
  constructor(canvas, city) {
    this.#canvas = canvas;
    this.#context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const lines = (/** @type {number[][] | undefined} */ all) => (all ?? []).map(toLine);
    this.#city = {
      water: lines(city.water), islands: lines(city.islands), parks: lines(city.parks), streets: lines(city.streets),
      routes: (city.routes ?? []).map((/** @type {any} */ route) => ({ mode: route.mode, path: toLine(route.path) })),
      fences: (city.fences ?? []).map((/** @type {any} */ fence) => ({ ...fence, at: project(fence.lon, fence.lat) })),
    };
  }

  /** Takes the colours from the style sheet. */
  readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["land", "water", "shore", "park", "street", "route", "ink", "soft", "panel", "fence", "accent", ...MODES];
    this.#colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.#theme = document.documentElement.dataset.theme ?? "";
  }

  /**
   * @param {Camera} camera
   * @param {{ vehicles: Iterable<{ vehicle: any, at: Point }>, hidden: Set<string>, selected: string | undefined, trail: Point[] }} scene
   */
  draw(camera, scene) {
    const ratio = devicePixelRatio;
    for (const canvas of [this.#canvas, this.#ground]) {
      const [width, height] = [Math.round(camera.width * ratio), Math.round(camera.height * ratio)];
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    }
    const key = [camera.centre.x, camera.centre.y, camera.scale, camera.width, camera.height, ratio, this.#theme].join();
    if (key !== this.#groundKey) {
      this.#groundKey = key;
      const context = /** @type {CanvasRenderingContext2D} */ (this.#ground.getContext("2d"));
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.#drawGround(context, camera);
    }
    const context = this.#context;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.#ground, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#drawTrail(context, camera, scene.trail);
    this.#drawVehicles(context, camera, scene);
  }

  /** @param {CanvasRenderingContext2D} context @param {Camera} camera */
  #drawGround(context, camera) {
    const { land, water, shore, park, street, fence, ink } = this.#colours;
    context.fillStyle = land;
    context.fillRect(0, 0, camera.width, camera.height);
    context.lineJoin = context.lineCap = "round";
    const fill = (/** @type {Line[]} */ shapes, /** @type {string} */ colour, /** @type {string} */ edge) => {
      context.beginPath();
      for (const shape of shapes) trace(context, camera, shape, true);
      context.fillStyle = colour;
      context.fill();
      context.strokeStyle = edge;
      context.lineWidth = 1.5;
      context.stroke();
    };
    fill(this.#city.water, water, shore);
    fill(this.#city.islands, land, shore);
    fill(this.#city.parks, park, park);
    context.strokeStyle = street;
    context.lineWidth = Math.max(0.8, Math.min(7, camera.scale / 1_700_000));
    context.beginPath();
    for (const line of this.#city.streets) trace(context, camera, line, false);
    context.stroke();
    for (const mode of MODES) {
      context.beginPath();
      for (const route of this.#city.routes) if (route.mode === mode) trace(context, camera, route.path, false);
      context.strokeStyle = this.#colours[mode];
      context.globalAlpha = mode === "bus" ? 0.22 : 0.42;
      context.lineWidth = mode === "bus" ? 1.3 : mode === "ferry" ? 1.6 : 2.6;
      context.setLineDash(mode === "ferry" ? [5, 6] : []);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.setLineDash([6, 5]);
    context.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = "center";
    for (const { at, radius_m, lat, name } of this.#city.fences) {
      const [x, y] = camera.toScreen(at);
      const radius = radius_m / (40_075_016 * Math.cos(lat * Math.PI / 180)) * camera.scale;
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      context.strokeStyle = fence;
      context.lineWidth = 2;
      context.stroke();
      context.globalAlpha = 0.12;
      context.fillStyle = fence;
      context.fill();
      context.globalAlpha = 1;
      context.fillStyle = ink;
      context.strokeStyle = land;
      context.setLineDash([]);
      context.lineWidth = 3;
      context.strokeText(name, x, y - radius - 6);
      context.fillText(name, x, y - radius - 6);
      context.setLineDash([6, 5]);
    }
    context.setLineDash([]);
  }

  /** @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Point[]} trail */
  #drawTrail(context, camera, trail) {
    const points = trail.map((point) => camera.toScreen(point));
    context.strokeStyle = this.#colours.accent;
    context.lineWidth = 4;
    context.lineJoin = context.lineCap = "round";
    for (let i = 1; i < points.length; i += 1) {
      context.globalAlpha = 0.15 + 0.75 * i / points.length;
      context.beginPath();
      context.moveTo(...points[i - 1]);
      context.lineTo(...points[i]);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {Camera} camera @param {{ vehicles: Iterable<{ vehicle: any, at: Point }>, hidden: Set<string>, selected: string | undefined }} scene */
  #drawVehicles(context, camera, scene) {
    const size = Math.max(3.2, Math.min(9, 2.2 + camera.scale / 1_300_000));
    const withLines = camera.scale > 6_000_000;
    for (const { vehicle, at } of scene.vehicles) {
      if (scene.hidden.has(vehicle.mode)) continue;
      const [x, y] = camera.toScreen(at);
      if (x < -20 || y < -20 || x > camera.width + 20 || y > camera.height + 20) continue;
      const isSelected = vehicle.id === scene.selected;
      context.save();
      context.translate(x, y);
      context.rotate(vehicle.heading * Math.PI / 180);
      arrow(context, isSelected ? size * 1.7 : size);
      context.fillStyle = this.#colours[vehicle.mode] ?? this.#colours.other;
      context.fill();
      context.lineWidth = isSelected ? 2.5 : 1;
      context.strokeStyle = isSelected ? this.#colours.ink : this.#colours.land;
      context.stroke();
      context.restore();
      if (withLines || isSelected) {
        context.font = "600 11px system-ui, 'DejaVu Sans', sans-serif";
        context.textAlign = "center";
        context.lineWidth = 3;
        context.strokeStyle = this.#colours.land;
        context.strokeText(vehicle.line, x, y - size - 5);
        context.fillStyle = this.#colours.ink;
        context.fillText(vehicle.line, x, y - size - 5);
      }
    }
  }
}

/** @param {CanvasRenderingContext2D} context @param {Camera} camera @param {Line} line @param {boolean} closed */
function trace(context, camera, line, closed) {
  const [dx, dy] = [camera.width / 2 - camera.centre.x * camera.scale, camera.height / 2 - camera.centre.y * camera.scale];
  for (let i = 0; i < line.length; i += 2) {
    const [x, y] = [line[i] * camera.scale + dx, line[i + 1] * camera.scale + dy];
    if (i === 0) context.moveTo(x, y);
    else context.lineTo(x, y);
  }
  if (closed) context.closePath();
}

/** A drop that points north. @param {CanvasRenderingContext2D} context @param {number} size */
function arrow(context, size) {
  context.beginPath();
  context.moveTo(0, -size * 1.5);
  context.lineTo(size * 0.95, size * 0.3);
  context.arc(0, size * 0.15, size * 0.96, 0.15, Math.PI - 0.15);
  context.closePath();
}
