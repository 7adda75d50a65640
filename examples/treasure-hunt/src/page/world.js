// What the page knows of the world, from notices alone. No canvas, no socket.

import { REGION_SIDE, REGIONS, REGIONS_PER_SIDE } from './wire.js';

const CHANGE = { moved: 0, left: 1, dug: 2, clueDown: 3, clueUp: 4, delivered: 5 };

/** World coordinates of a tile of a region. */
export function place(region, tile) {
  return [
    (region % REGIONS_PER_SIDE) * REGION_SIDE + (tile % REGION_SIDE),
    Math.floor(region / REGIONS_PER_SIDE) * REGION_SIDE + Math.floor(tile / REGION_SIDE),
  ];
}

export class World {
  /** Player → where it is and was. */
  players = new Map();
  regions = Array.from({ length: REGIONS }, () => ({ players: new Set(), clues: [], dug: null }));
  /** Deliveries and finds to light up: `{x, y, at, what}`. */
  sparks = [];

  snapshot({ region, players, clues, dug }, now) {
    const known = this.regions[region];
    for (const player of known.players) {
      if (this.players.get(player)?.region === region) this.players.delete(player);
    }
    known.players = new Set();
    known.clues = clues;
    known.dug = dug.slice();
    for (const [player, tile] of players) this.#moved(region, player, tile, now);
  }

  view({ region, changes }, now) {
    const known = this.regions[region];
    for (const { player, tile, what } of changes) {
      const [x, y] = place(region, tile);
      if (what === CHANGE.moved) this.#moved(region, player, tile, now);
      else if (what === CHANGE.left) this.#left(region, player);
      else if (what === CHANGE.dug && known.dug) known.dug[tile >> 3] |= 1 << (tile & 7);
      else if (what === CHANGE.clueDown) known.clues.push(tile);
      else if (what === CHANGE.clueUp) known.clues.splice(known.clues.indexOf(tile), 1);
      if (what === CHANGE.clueDown || what === CHANGE.delivered) {
        this.sparks.push({ x, y, at: now, what: what === CHANGE.delivered ? 'delivered' : 'found' });
      }
    }
    if (this.sparks.length > 400) this.sparks.splice(0, this.sparks.length - 400);
  }

  #moved(region, player, tile, now) {
    const [x, y] = place(region, tile);
    const before = this.players.get(player);
    if (before && before.region !== region) this.regions[before.region].players.delete(player);
    this.regions[region].players.add(player);
    const from = before ?? { x, y };
    this.players.set(player, { region, x, y, fromX: from.x, fromY: from.y, at: now });
  }

  #left(region, player) {
    this.regions[region].players.delete(player);
    // It may be next door already: news of two regions come in any order.
    if (this.players.get(player)?.region === region) this.players.delete(player);
  }
}
