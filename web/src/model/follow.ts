//! Which rooms to follow live. A person may be in thousands of rooms; one connection follows the most active ones and the
//! open one, the others are counted through the user's own stream and by listing again.

import { CHANNELS_PER_CONNECTION_MAX, FRAME_BYTES_MAX } from '../protocol/generated/limits';
import type { RoomId } from '../protocol/generated/chat';
import { byActivity, type Rooms } from './rooms';

/** A subscribe command with the longest numbers, rounded up. */
const SUBSCRIBE_BYTES_MAX = 170;
/** The SDK subscribes to all again in the one frame of a reconnect, so they must fit into it. */
export const FOLLOWED_MAX = Math.min(CHANNELS_PER_CONNECTION_MAX, Math.floor(FRAME_BYTES_MAX / SUBSCRIBE_BYTES_MAX));

export function followed(rooms: Rooms, open: RoomId | undefined, limit: number): Set<RoomId> {
  const chosen = new Set<RoomId>();
  if (open !== undefined && rooms.has(open)) chosen.add(open);
  for (const view of [...rooms.values()].sort(byActivity)) {
    if (chosen.size >= limit) break;
    chosen.add(view.id);
  }
  return chosen;
}
