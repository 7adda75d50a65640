// Draws the world: the ground once per region, everything that moves each frame.

import { REGION_SIDE, REGIONS, REGIONS_PER_SIDE, WORLD_SIDE } from './wire.js';
import { place } from './world.js';

// Ground kinds as in src/map/terrain.rs, each from low to high.
const RAMPS = [
  [[9, 38, 62], [38, 112, 140]], [[201, 178, 120], [226, 207, 153]], [[92, 140, 78], [128, 168, 92]],
  [[44, 92, 62], [66, 116, 74]], [[112, 108, 104], [196, 194, 190]],
];
const LEVELS = [[0, 12], [12, 14], [13, 17], [17, 20], [20, 27]];
const STEP_MS = 110;
const SPARK_MS = 1400;
const RETRY_MS = 1000;

/** The ground of a region, or null while the server does not answer. */
async function fetchGround(region) {
  try {
    const response = await fetch(`/map/${region}`);
    return response.ok ? new Uint8Array(await response.arrayBuffer()) : null;
  } catch {
    return null;
  }
}

export class Canvas {
  #canvas; #paint; #ground; #heights = new Uint8Array(WORLD_SIDE * WORLD_SIDE); #known = new Set();
  /** Pixels per tile; `null` shows the whole world. */
  zoom = null;
  #x = WORLD_SIDE / 2; #y = WORLD_SIDE / 2; #scale = 1;

  constructor(canvas) {
    this.#canvas = canvas;
    this.#paint = canvas.getContext('2d');
    this.#ground = new OffscreenCanvas(WORLD_SIDE, WORLD_SIDE);
    const ground = this.#ground.getContext('2d');
    ground.fillStyle = '#0b2233';
    ground.fillRect(0, 0, WORLD_SIDE, WORLD_SIDE);
  }

  /** Loads the ground, a few regions at a time, the middle first. */
  async load() {
    const middle = (REGIONS_PER_SIDE - 1) / 2;
    const far = (region) => Math.hypot(region % REGIONS_PER_SIDE - middle, Math.floor(region / REGIONS_PER_SIDE) - middle);
    const left = Array.from({ length: REGIONS }, (_, region) => region).sort((a, b) => far(b) - far(a));
    const worker = async () => {
      for (let region = left.pop(); region !== undefined; region = left.pop()) {
        const tiles = await fetchGround(region);
        if (tiles) this.#learn(region, tiles);
        else {
          // The server is away: the rest waits for it.
          left.push(region);
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        }
      }
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
  }

  get groundIsComplete() { return this.#known.size === REGIONS; }

  #learn(region, tiles) {
    const [left, top] = place(region, 0);
    const image = new ImageData(REGION_SIDE, REGION_SIDE);
    tiles.forEach((tile, number) => {
      const [x, y] = place(region, number);
      this.#heights[y * WORLD_SIDE + x] = tile >> 3;
      image.data.set([...this.#colour(tile, number, tiles), 255], number * 4);
    });
    this.#ground.getContext('2d').putImageData(image, left, top);
    this.#known.add(region);
  }

  #colour(tile, number, tiles) {
    const [kind, height] = [Math.min(tile & 7, 4), tile >> 3];
    const [low, high] = LEVELS[kind];
    const share = Math.max(0, Math.min(1, (height - low) / (high - low)));
    const north = number >= REGION_SIDE ? tiles[number - REGION_SIDE] >> 3 : height;
    const west = number % REGION_SIDE ? tiles[number - 1] >> 3 : height;
    // Light from the north-west, and a grain so that open land is not a flat colour.
    const light = kind === 0 ? 0 : (2 * height - north - west) * 9;
    const grain = ((number * 2654435761) >>> 27) % 7 - 3;
    const [from, to] = RAMPS[kind];
    return from.map((part, index) => part + (to[index] - part) * share + light + grain);
  }

  draw(world, own, now) {
    const { width, height } = this.#fit();
    const paint = this.#paint;
    const ratio = window.devicePixelRatio || 1;
    const whole = Math.min(width, height) / WORLD_SIDE;
    const wanted = this.zoom === null ? whole : Math.max(whole, this.zoom * ratio);
    this.#scale += (wanted - this.#scale) * 0.2;
    const target = this.zoom !== null && own ? this.#at(own, now) : [WORLD_SIDE / 2, WORLD_SIDE / 2];
    this.#x += (target[0] - this.#x) * 0.2;
    this.#y += (target[1] - this.#y) * 0.2;
    const scale = this.#scale;
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.fillStyle = '#08192a';
    paint.fillRect(0, 0, width, height);
    paint.setTransform(scale, 0, 0, scale, width / 2 - this.#x * scale, height / 2 - this.#y * scale);
    paint.imageSmoothingEnabled = scale < 3;
    paint.drawImage(this.#ground, 0, 0);
    const half = [width / scale / 2 + 2, height / scale / 2 + 2];
    const sees = (x, y) => Math.abs(x - this.#x) < half[0] && Math.abs(y - this.#y) < half[1];
    this.#drawGround(world, sees, scale);
    this.#drawPlayers(world, own, sees, scale, now);
    this.#drawSparks(world, now, scale);
  }

  #fit() {
    const canvas = this.#canvas;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    return canvas;
  }

  #at({ x, y, fromX, fromY, at }, now) {
    const share = Math.min(1, (now - at) / STEP_MS);
    return [fromX + (x - fromX) * share + 0.5, fromY + (y - fromY) * share + 0.5];
  }

  #drawGround(world, sees, scale) {
    const paint = this.#paint;
    for (let region = 0; region < REGIONS; region += 1) {
      const known = world.regions[region];
      const [left, top] = place(region, 0);
      const [x, y] = [left + REGION_SIDE / 2, top + REGION_SIDE / 2];
      if (scale > 4 && sees(left + 32, top + 32) === false && !this.#overlaps(left, top, sees)) continue;
      if (scale > 3 && known.dug) {
        paint.fillStyle = '#2a1c0ccc';
        for (let tile = 0; tile < REGION_SIDE * REGION_SIDE; tile += 1) {
          if (known.dug[tile >> 3] >> (tile & 7) & 1) {
            const [tx, ty] = place(region, tile);
            this.#dot(tx + 0.5, ty + 0.5, 0.3);
          }
        }
      }
      this.#camp(x, y, scale);
      paint.fillStyle = '#ffd75e';
      for (const tile of known.clues) {
        const [tx, ty] = place(region, tile);
        const size = Math.max(0.34, 1.4 / scale);
        paint.beginPath();
        paint.moveTo(tx + 0.5, ty + 0.5 - size);
        paint.lineTo(tx + 0.5 + size, ty + 0.5);
        paint.lineTo(tx + 0.5, ty + 0.5 + size);
        paint.lineTo(tx + 0.5 - size, ty + 0.5);
        paint.fill();
      }
    }
  }

  #overlaps(left, top, sees) {
    return [0, 21, 42, 63].some((dx) => [0, 21, 42, 63].some((dy) => sees(left + dx, top + dy)));
  }

  #camp(x, y, scale) {
    const paint = this.#paint;
    const size = scale > 4 ? 1.5 : Math.max(1.2, 2.2 / scale);
    paint.fillStyle = '#f6efe0';
    paint.strokeStyle = '#7a3b22';
    paint.lineWidth = size * 0.18;
    paint.beginPath();
    paint.moveTo(x + 0.5, y + 0.5 - size);
    paint.lineTo(x + 0.5 + size, y + 0.5 + size * 0.7);
    paint.lineTo(x + 0.5 - size, y + 0.5 + size * 0.7);
    paint.closePath();
    paint.fill();
    paint.stroke();
  }

  #drawPlayers(world, own, sees, scale, now) {
    const paint = this.#paint;
    const radius = Math.max(0.36, 1.35 / scale);
    for (const [id, player] of world.players) {
      const [x, y] = this.#at(player, now);
      if (!sees(x, y) || player === own) continue;
      paint.fillStyle = `hsl(${(id * 47) % 360} 85% 66%)`;
      if (scale > 3) this.#dot(x, y, radius);
      else paint.fillRect(x - radius, y - radius, radius * 2, radius * 2);
      if (scale > 10) {
        paint.strokeStyle = '#06121bcc';
        paint.lineWidth = 0.07;
        paint.stroke();
      }
    }
    if (!own) return;
    const [x, y] = this.#at(own, now);
    paint.strokeStyle = '#fff';
    paint.lineWidth = Math.max(0.12, 1.5 / scale);
    paint.fillStyle = '#ff5e3a';
    this.#dot(x, y, Math.max(0.44, 3 / scale));
    paint.stroke();
  }

  #drawSparks(world, now, scale) {
    const paint = this.#paint;
    world.sparks = world.sparks.filter((spark) => now - spark.at < SPARK_MS);
    for (const { x, y, at, what } of world.sparks) {
      // A frame has the time at which it was due, and a slow machine may have heard of the spark since.
      const share = Math.max(0, now - at) / SPARK_MS;
      paint.strokeStyle = what === 'delivered' ? `rgb(123 220 181 / ${1 - share})` : `rgb(255 215 94 / ${1 - share})`;
      paint.lineWidth = Math.max(0.15, 1.6 / scale);
      paint.beginPath();
      paint.arc(x + 0.5, y + 0.5, Math.max(1.6, 9 / scale) * (0.25 + share), 0, 2 * Math.PI);
      paint.stroke();
    }
  }

  #dot(x, y, radius) {
    this.#paint.beginPath();
    this.#paint.arc(x, y, radius, 0, 2 * Math.PI);
    this.#paint.fill();
  }
}
