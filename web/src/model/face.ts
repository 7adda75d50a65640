//! How a person without a picture looks: a colour and a pattern that follow from their id, the same everywhere and for
//! everyone, and different enough that neighbours in a list are told apart before their letters are read.

import type { UserId } from '../protocol/generated/chat';

/** Equal steps of hue look alike in green and far apart in orange; these are steps that the eye tells apart. */
const HUES = [12, 36, 58, 84, 118, 145, 172, 196, 220, 245, 268, 292, 318, 344] as const;
const PATTERNS = ['sun', 'half', 'corner', 'rings', 'stripes', 'hill'] as const;
/** How far the pattern's hue is from the ground's. */
const TURNS = [40, -55, 120] as const;

export type Pattern = (typeof PATTERNS)[number];

export interface Face {
  /** Degrees on the OKLCH circle. */
  hue: number;
  /** Of the pattern on it. */
  second: number;
  pattern: Pattern;
}

export function faceOf(id: UserId): Face {
  const hash = fnv1a(id);
  const hue = HUES[hash % HUES.length] ?? 0;
  const rest = Math.floor(hash / HUES.length);
  return {
    hue,
    pattern: PATTERNS[rest % PATTERNS.length] ?? 'sun',
    second: (hue + (TURNS[Math.floor(rest / PATTERNS.length) % TURNS.length] ?? 0) + 360) % 360,
  };
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
