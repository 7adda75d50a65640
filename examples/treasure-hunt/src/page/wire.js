// Frames as bytes: what src/wire says in Rust, for the page. Nothing here knows the page.

export const REGION_SIDE = 64;
export const REGIONS_PER_SIDE = 16;
export const REGIONS = REGIONS_PER_SIDE * REGIONS_PER_SIDE;
export const WORLD_SIDE = REGION_SIDE * REGIONS_PER_SIDE;
export const DEED = { join: 0, move: 1, dig: 2, take: 3, drop: 4, leave: 5 };
const ANYWHERE = 0xffff;
const text = new TextDecoder();

/** Brings a new player into the world; `tag` comes back. */
export function joinFrame(tag, name) {
  const bytes = new TextEncoder().encode(name);
  const view = new DataView(new ArrayBuffer(8 + bytes.length));
  view.setUint8(0, 1);
  view.setUint32(1, tag, true);
  view.setUint16(5, ANYWHERE, true);
  view.setUint8(7, bytes.length);
  new Uint8Array(view.buffer, 8).set(bytes);
  return view.buffer;
}

/** Goes on playing; the token is a BigInt. */
export function resumeFrame(player, token) {
  const view = new DataView(new ArrayBuffer(13));
  view.setUint8(0, 2);
  view.setUint32(1, player, true);
  view.setBigUint64(5, token, true);
  return view.buffer;
}

export function actFrame({ player, seq, deed, x, y }) {
  const view = new DataView(new ArrayBuffer(14));
  view.setUint8(0, 3);
  view.setUint32(1, player, true);
  view.setUint32(5, seq, true);
  view.setUint8(9, deed);
  view.setUint16(10, x, true);
  view.setUint16(12, y, true);
  return view.buffer;
}

/** Watches every region. */
export function watchFrame() {
  return new Uint8Array([4]).buffer;
}

/** The notices of one message, in order. */
export function* notices(buffer) {
  const fields = new Fields(buffer);
  while (!fields.isAtEnd()) {
    const kind = fields.u8();
    const read = READERS[kind];
    if (!read) throw new Error(`no frame begins with byte ${kind}`);
    yield read(fields);
  }
}

const READERS = {
  1: (fields) => ({ kind: 'joined', tag: fields.u32(), token: fields.u64(), state: outcome(fields) }),
  2: (fields) => ({ kind: 'done', state: outcome(fields) }),
  3: (fields) => ({ kind: 'refused', player: fields.u32(), seq: fields.u32(), code: fields.u8(), text: fields.text() }),
  4: (fields) => {
    const [region, count] = [fields.u16(), fields.u16()];
    const change = () => ({ player: fields.u32(), tile: fields.u16(), what: fields.u8() });
    return { kind: 'view', region, changes: Array.from({ length: count }, change) };
  },
  5: (fields) => {
    const [region, tide, players, clues] = [fields.u16(), fields.u16(), fields.u16(), fields.u16()];
    return {
      kind: 'snapshot', region, tide,
      players: Array.from({ length: players }, () => [fields.u32(), fields.u16()]),
      clues: Array.from({ length: clues }, () => fields.u16()),
      dug: fields.bytes(REGION_SIDE * REGION_SIDE / 8),
    };
  },
  6: (fields) => ({ kind: 'fault', text: fields.text() }),
};

function outcome(fields) {
  const state = {
    player: fields.u32(), seq: fields.u32(), deed: fields.u8(), x: fields.u16(), y: fields.u16(),
    gain: fields.u16(), score: fields.u32(), carried: fields.u8(),
  };
  const hints = fields.u8();
  return { ...state, clue: (hints & 1) !== 0, camp: (hints & 2) !== 0, scent: fields.u8() };
}

class Fields {
  #view; #at = 0;

  constructor(buffer) { this.#view = new DataView(buffer); }
  isAtEnd() { return this.#at >= this.#view.byteLength; }
  #step(len) { const at = this.#at; this.#at += len; return at; }
  u8() { return this.#view.getUint8(this.#step(1)); }
  u16() { return this.#view.getUint16(this.#step(2), true); }
  u32() { return this.#view.getUint32(this.#step(4), true); }
  u64() { return this.#view.getBigUint64(this.#step(8), true); }
  bytes(len) { return new Uint8Array(this.#view.buffer, this.#step(len), len); }
  text() { return text.decode(this.bytes(this.u8())); }
}
