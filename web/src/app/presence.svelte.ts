//! Who is there now, told by the rooms one follows: each connection that comes to or leaves one of them. A person is online
//! while any room has a connection of theirs; which room told it makes no difference to what is shown.

import type { Present, PresenceChange } from '../net/socket';
import type { RoomId, UserId } from '../protocol/generated/chat';

export class Presence {
  online = $state.raw<ReadonlySet<UserId>>(new Set());
  readonly #rooms = new Map<RoomId, Map<string, UserId>>();
  #due = false;

  /** What a room said when asked; it replaces what was known of it. */
  seed(room: RoomId, present: readonly Present[]): void {
    this.#rooms.set(room, new Map(present.map(({ client, user }) => [client, user])));
    this.#tell();
  }

  changed({ room, client, user, here }: PresenceChange): void {
    const clients = this.#rooms.get(room) ?? new Map<string, UserId>();
    if (here) clients.set(client, user);
    else clients.delete(client);
    this.#rooms.set(room, clients);
    this.#tell();
  }

  forget(room: RoomId): void {
    if (this.#rooms.delete(room)) this.#tell();
  }

  /** A new connection: what the one before told is out of date, and shown until the rooms have answered. */
  restart(): void {
    this.#rooms.clear();
  }

  /** Hundreds may come back at once after a restart: they are told together. */
  #tell(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      this.#due = false;
      const online = new Set<UserId>();
      for (const clients of this.#rooms.values()) for (const user of clients.values()) online.add(user);
      if (online.size !== this.online.size || [...online].some((user) => !this.online.has(user))) this.online = online;
    });
  }
}
