//! Whom the parts of a page show of each room, and who of them is there. The server is asked for those on screen and tells
//! whenever one of them comes or goes; nothing is known of anybody else. Pure: it says what to ask, and takes what was told.

import type { RoomEvent } from '../protocol/events';
import type { RoomId, UserId } from '../protocol/generated/chat';
import { WATCHED_USERS_MAX } from '../protocol/generated/limits';

export type PresenceEvent = Extract<RoomEvent, { type: 'presence' }>;

export interface Question {
  room: RoomId;
  users: UserId[];
}

export class Watched {
  /** What each part of the page shows of a room. */
  readonly #shown = new Map<RoomId, Map<object, readonly UserId[]>>();
  /** What this connection has asked for, of each room that it is subscribed to. */
  readonly #asked = new Map<RoomId, readonly UserId[]>();
  readonly #here = new Map<RoomId, Set<UserId>>();
  readonly #counts = new Map<RoomId, number>();

  /** From now on `part` shows these users of a room; none: it is gone. */
  show(room: RoomId, part: object, users: readonly UserId[]): void {
    const parts = this.#shown.get(room) ?? new Map<object, readonly UserId[]>();
    if (users.length > 0) parts.set(part, users);
    else parts.delete(part);
    if (parts.size > 0) this.#shown.set(room, parts);
    else this.#shown.delete(room);
  }

  /** The connection has subscribed to the room just now, and watches nobody in it yet. */
  subscribed(room: RoomId): void {
    this.#asked.set(room, []);
  }

  /** The subscription has ended, and with it what was asked for. */
  unsubscribed(room: RoomId): void {
    this.#asked.delete(room);
    this.#here.delete(room);
    this.#counts.delete(room);
  }

  /** A new connection. What the one before told is shown until the rooms are told of again. */
  restart(): void {
    this.#asked.clear();
  }

  forget(room: RoomId): void {
    this.#shown.delete(room);
    this.#asked.delete(room);
    this.#here.delete(room);
    this.#counts.delete(room);
  }

  /** What is to be asked now, so that the server tells of those who are shown; asked once. */
  questions(): Question[] {
    const questions: Question[] = [];
    for (const [room, asked] of this.#asked) {
      const users = this.#onScreen(room);
      if (users.length === asked.length && users.every((user, index) => user === asked[index])) continue;
      this.#asked.set(room, users);
      this.#forgetOthers(room, users);
      questions.push({ room, users });
    }
    return questions;
  }

  told({ room, online, away, users }: PresenceEvent): void {
    const here = this.#here.get(room) ?? new Set();
    // Who left the screen meanwhile is not asked for any more, and nobody would tell when they go.
    const asked = new Set(this.#asked.get(room));
    for (const user of online) if (asked.has(user)) here.add(user);
    for (const user of away) here.delete(user);
    this.#here.set(room, here);
    this.#counts.set(room, users);
  }

  /** Somebody is online while any room on screen has them; which room told it makes no difference. */
  online(): Set<UserId> {
    const online = new Set<UserId>();
    for (const here of this.#here.values()) for (const user of here) online.add(user);
    return online;
  }

  /** How many users are in each room of which somebody is shown. */
  counts(): Map<RoomId, number> {
    return new Map(this.#counts);
  }

  /** As many as the server takes; parts that show few before those that show many. */
  #onScreen(room: RoomId): UserId[] {
    const parts = [...(this.#shown.get(room)?.values() ?? [])].sort((a, b) => a.length - b.length);
    return [...new Set(parts.flat())].slice(0, WATCHED_USERS_MAX).sort();
  }

  #forgetOthers(room: RoomId, users: readonly UserId[]): void {
    const kept = new Set(users);
    const here = this.#here.get(room);
    for (const user of here ?? []) if (!kept.has(user)) here?.delete(user);
    if (users.length > 0) return;
    this.#here.delete(room);
    this.#counts.delete(room);
  }
}
