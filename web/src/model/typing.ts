//! Who is typing in a room, as a value. A notice ends by itself: the sender may have lost the network in mid-sentence.

import type { UserId } from '../protocol/generated/chat';

/** A typist repeats the notice every 3 s; two lost ones end it. */
export const TYPING_TTL_MS = 7_000;
/** How often a typist's own client repeats the notice. */
export const TYPING_REPEAT_MS = 3_000;

export interface Typist {
  name: string;
  /** In milliseconds since the page began: the time of day may be put back meanwhile. */
  until: number;
}

export type Typists = ReadonlyMap<UserId, Typist>;

export const NOBODY: Typists = new Map();

export function noticed(typists: Typists, user: UserId, name: string, on: boolean, now: number): Typists {
  const next = new Map(typists);
  if (on) next.set(user, { name, until: now + TYPING_TTL_MS });
  else next.delete(user);
  return next;
}

/** Without those whose notice ran out; the same value when nobody's did. */
export function expired(typists: Typists, now: number): Typists {
  const left = [...typists].filter(([, typist]) => typist.until > now);
  return left.length === typists.size ? typists : new Map(left);
}
