// @ts-check
// Where one looks: Web Mercator, a centre, a scale. Pure arithmetic; no canvas, no events.

/** @typedef {{ x: number, y: number }} Point  in world units: the globe is 1 by 1 */

const LAT_MAX = 85;
const SCALE_MIN = 2_000;
const SCALE_MAX = 60_000_000;

/** @param {number} lon @param {number} lat @returns {Point} */
export function project(lon, lat) {
  const clamped = Math.max(-LAT_MAX, Math.min(LAT_MAX, lat)) * Math.PI / 180;
  return { x: lon / 360 + 0.5, y: 0.5 - Math.log(Math.tan(Math.PI / 4 + clamped / 2)) / (2 * Math.PI) };
}

/** @param {Point} point @returns {[number, number]} lon and lat */
export function unproject({ x, y }) {
  const lat = (2 * Math.atan(Math.exp((0.5 - y) * 2 * Math.PI)) - Math.PI / 2) * 180 / Math.PI;
  return [(x - 0.5) * 360, lat];
}

export class Camera {
  /** Pixels per world unit. */
  scale = 100_000;
  /** @type {Point} */ centre = { x: 0.5, y: 0.5 };
  width = 1;
  height = 1;

  /** @param {Point} point @returns {[number, number]} pixels */
  toScreen(point) {
    return [(point.x - this.centre.x) * this.scale + this.width / 2, (point.y - this.centre.y) * this.scale + this.height / 2];
  }

  /** @param {number} px @param {number} py @returns {Point} */
  toWorld(px, py) {
    return { x: this.centre.x + (px - this.width / 2) / this.scale, y: this.centre.y + (py - this.height / 2) / this.scale };
  }

  /** @param {number} dx @param {number} dy pixels */
  pan(dx, dy) {
    this.centre = { x: this.centre.x - dx / this.scale, y: this.centre.y - dy / this.scale };
  }

  /** Zooms so that the world under a pixel stays there. @param {number} factor @param {number} px @param {number} py */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const under = this.toWorld(px, py);
    this.scale = Math.max(SCALE_MIN, Math.min(SCALE_MAX, this.scale * factor));
    const now = this.toWorld(px, py);
    this.centre = { x: this.centre.x + under.x - now.x, y: this.centre.y + under.y - now.y };
  }

  /** Shows a box beside the panels. @param {[number, number, number, number]} bounds @param {{ left: number, right: number, top: number, bottom: number }} inset */
  fit([west, south, east, north], inset) {
    const [a, b] = [project(west, north), project(east, south)];
    const width = Math.max(80, this.width - inset.left - inset.right);
    const height = Math.max(80, this.height - inset.top - inset.bottom);
    this.scale = Math.min(width / (b.x - a.x), height / (b.y - a.y));
    this.centre = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
    this.pan((inset.left - inset.right) / 2, (inset.top - inset.bottom) / 2);
  }

  /** The box in view, a little larger, as the server wants it. */
  bbox() {
    const [west, north] = unproject(this.toWorld(-40, -40));
    const [east, south] = unproject(this.toWorld(this.width + 40, this.height + 40));
    const clamp = (/** @type {number} */ v, /** @type {number} */ max) => Math.max(-max, Math.min(max, v)).toFixed(5);
    return [clamp(west, 180), clamp(south, 90), clamp(east, 180), clamp(north, 90)].join(",");
  }
}
