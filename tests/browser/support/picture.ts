//! Pictures for tests, as PNG files: noise that weighs what its pixels do, or a view of a harbour to look at.

import { randomBytes } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';

export interface NamedFile {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

type Colour = readonly [number, number, number];

/** Noise: it cannot be made smaller. */
export function picture(name: string, width: number, height: number): NamedFile {
  const rows = Array.from({ length: height }, () => Buffer.concat([Buffer.of(0), randomBytes(width * 3)]));
  return { name, mimeType: 'image/png', buffer: png(width, height, Buffer.concat(rows)) };
}

/** The sun comes up behind a boat at anchor. */
export function harbour(name: string, width: number, height: number): NamedFile {
  const rows = Array.from({ length: height }, (_, y) =>
    Buffer.from([0, ...Array.from({ length: width }, (__, x) => harbourAt(x / width, y / height, width / height)).flat()]),
  );
  return { name, mimeType: 'image/png', buffer: png(width, height, Buffer.concat(rows)) };
}

/** A picture whose header promises so many pixels, and which has none of them. */
export function announcing(name: string, width: number, height: number): NamedFile {
  return { name, mimeType: 'image/png', buffer: png(width, height, Buffer.alloc(0)) };
}

/** All black, of one bit a pixel: many pixels in a small file. */
export function black(name: string, width: number, height: number): NamedFile {
  const rows = Buffer.alloc((1 + Math.ceil(width / 8)) * height);
  return { name, mimeType: 'image/png', buffer: png(width, height, rows, { bits: 1, kind: 0 }) };
}

export function text(name: string, content: string): NamedFile {
  return { name, mimeType: 'text/plain', buffer: Buffer.from(content) };
}

const HORIZON = 0.62;
const SUN = { x: 0.68, y: 0.5, radius: 0.07 };
const BOAT = { x: 0.32, water: 0.7 };

/** `x` and `y` run from 0 to 1; `aspect` keeps the sun round. */
function harbourAt(x: number, y: number, aspect: number): Colour {
  const distance = Math.hypot((x - SUN.x) * aspect, y - SUN.y);
  if (isBoat(x, y)) return [38, 44, 52];
  if (y > HORIZON) {
    const ripple = Math.sin(y * 220 + Math.sin(x * 24) * 2) * 0.5 + 0.5;
    const glitter = Math.max(0, 1 - Math.abs(x - SUN.x) / (0.03 + (y - HORIZON) * 0.35)) * ripple;
    return mix(mix([104, 128, 140], [30, 62, 78], (y - HORIZON) / (1 - HORIZON)), [255, 214, 150], glitter * 0.8);
  }
  if (distance < SUN.radius) return [255, 240, 205];
  const sky = mix([64, 96, 138], [246, 190, 140], (y / HORIZON) ** 1.4);
  return mix(sky, [255, 226, 170], Math.exp((SUN.radius - distance) * 7) * 0.7);
}

function isBoat(x: number, y: number): boolean {
  const hull = y > BOAT.water - 0.05 && y < BOAT.water && Math.abs(x - BOAT.x) < 0.11 - (y - BOAT.water + 0.05) * 0.7;
  const mast = Math.abs(x - BOAT.x) < 0.003 && y > 0.26 && y < BOAT.water;
  const height = (y - 0.29) / (BOAT.water - 0.1 - 0.29);
  const sail = height > 0 && height < 1 && x > BOAT.x + 0.008 && x < BOAT.x + 0.008 + height * 0.085;
  return hull || mast || sail;
}

function mix(from: Colour, to: Colour, part: number): Colour {
  const at = (index: 0 | 1 | 2) => Math.round(from[index] + (to[index] - from[index]) * Math.min(1, Math.max(0, part)));
  return [at(0), at(1), at(2)];
}

/** Eight bits each of red, green and blue, or as told; every row begins with a 0, for “not filtered”. */
function png(width: number, height: number, rows: Buffer, { bits, kind } = { bits: 8, kind: 2 }): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(bits, 8);
  header.writeUInt8(kind, 9);
  const chunks = [chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...chunks]);
}

function chunk(kind: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
