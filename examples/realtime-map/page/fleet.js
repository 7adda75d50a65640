// @ts-check
// The vehicles the page knows: where each was last, where it is drawn now, and who went to sleep. No canvas, no network.

import { project } from "./camera.js";

/** @typedef {import("./feed.js").Sighting} Sighting */
/** @typedef {{ id: string, at: import("./camera.js").Point, from: import("./camera.js").Point, movedAt: number, heading: number, speed: number, delay: number, mode: string, line: string, atMs: number, heardAt: number, speeds: number[] }} Vehicle */

/** A report a second: a vehicle glides to its new place in about that time. */
const GLIDE_MS = 1_000;
/** Not heard of for so long, it is taken off: its farewell was missed. */
const FORGET_MS = 120_000;
const SPEEDS_MAX = 120;

export class Fleet {
  /** @type {Map<string, Vehicle>} */ vehicles = new Map();

  /** @param {Sighting[]} sightings @param {number} now */
  see(sightings, now) {
    for (const [id, lat, lon, heading, speedCms, delay, mode, line, , atMs] of sightings) {
      const at = project(lon, lat);
      const known = this.vehicles.get(id);
      if (!known) {
        this.vehicles.set(id, { id, at, from: at, movedAt: now, heading, speed: speedCms / 100, delay, mode, line, atMs, heardAt: now, speeds: [speedCms / 100] });
        continue;
      }
      if (atMs < known.atMs) continue;
      known.from = this.drawnAt(known, now);
      Object.assign(known, { at, movedAt: now, heading, speed: speedCms / 100, delay, mode, line, atMs, heardAt: now });
      known.speeds.push(known.speed);
      if (known.speeds.length > SPEEDS_MAX) known.speeds.shift();
    }
  }

  /** @param {string[]} ids */
  sleep(ids) {
    for (const id of ids) this.vehicles.delete(id);
  }

  /** @param {number} now */
  forget(now) {
    for (const [id, vehicle] of this.vehicles) if (now - vehicle.heardAt > FORGET_MS) this.vehicles.delete(id);
  }

  /** Between the last two places. @param {Vehicle} vehicle @param {number} now */
  drawnAt(vehicle, now) {
    const share = Math.min(1, (now - vehicle.movedAt) / GLIDE_MS);
    return {
      x: vehicle.from.x + (vehicle.at.x - vehicle.from.x) * share,
      y: vehicle.from.y + (vehicle.at.y - vehicle.from.y) * share,
    };
  }
}
