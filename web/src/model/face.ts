//! How a person without a picture looks: a ground and a shape that follow from their id, the same everywhere and for
//! everyone. Few colours that are far apart, and shapes that stand out from them: people in a list are told apart at a
//! glance, before their letters are read.

import type { UserId } from '../protocol/generated/chat';

/** Degrees on the OKLCH circle. With more of them, neighbours would look alike. */
const HUES = [20, 65, 110, 155, 200, 245, 290, 335] as const;
/** Lightness of the ground and of the shape on it. White letters can be read on both. */
const TONES = [[0.54, 0.4], [0.4, 0.54]] as const;
const PATTERNS = ['sun', 'half', 'corner', 'rings', 'stripes', 'hill', 'bars', 'quarters'] as const;
/** How far the shape's hue is from the ground's. */
const TURNS = [60, -90] as const;

export type Pattern = (typeof PATTERNS)[number];

export interface Face {
  /** Of the ground, and of the name in a list of messages. */
  hue: number;
  light: number;
  /** The hue of the shape. */
  second: number;
  /** The lightness of the shape. */
  shade: number;
  pattern: Pattern;
}

export function faceOf(id: UserId): Face {
  let rest = fnv1a(id);
  /** The next of `count` choices. */
  const next = (count: number): number => {
    const chosen = rest % count;
    rest = Math.floor(rest / count);
    return chosen;
  };
  const hue = HUES[next(HUES.length)] ?? 0;
  const [light, shade] = TONES[next(TONES.length)] ?? TONES[0];
  const pattern = PATTERNS[next(PATTERNS.length)] ?? 'sun';
  return { hue, light, shade, pattern, second: (hue + (TURNS[next(TURNS.length)] ?? 0) + 360) % 360 };
}

export function initialsOf(name: string): string {
  const words = name.split(/[\s._-]+/).filter(Boolean);
  const letters = words.length > 2 ? [words[0], words.at(-1)] : words;
  return letters.map((word) => [...(word ?? '')][0] ?? '').join('').toLocaleUpperCase();
}

/** FNV-1a (Fowler, Noll, Vo), with a last mixing step (MurmurHash3): ids that differ in one character end far apart. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
