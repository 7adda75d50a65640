//! Which rooms to follow live. A person may be in thousands of rooms; one connection follows the most active ones and the
//! open one, the others are counted through the user's own stream and by listing again.

import type { RoomId } from '../protocol/generated/chat';
import { byActivity, type Rooms } from './rooms';

/** All subscribe again in the one frame of a reconnect: 300 of at most 160 bytes fit into FRAME_BYTES_MAX. */
export const FOLLOWED_MAX = 300;

export function followed(rooms: Rooms, open: RoomId | undefined, limit: number): Set<RoomId> {
  const chosen = new Set<RoomId>();
  if (open !== undefined && rooms.has(open)) chosen.add(open);
  for (const view of [...rooms.values()].sort(byActivity)) {
    if (chosen.size >= limit) break;
    chosen.add(view.id);
  }
  return chosen;
}
