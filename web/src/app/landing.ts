//! Where one arrives: in the room that was open last, else where the most is going on.

import { byActivity } from '../model/rooms';
import type { RoomId } from '../protocol/generated/chat';
import type { Chat } from './chat.svelte';
import type { Folkmoot } from './folkmoot.svelte';

export function landing(folkmoot: Folkmoot, chat: Chat): RoomId | undefined {
  const last = folkmoot.keep.recentRooms(chat.me.id).find((room) => chat.rooms.has(room));
  if (last !== undefined) return last;
  const views = [...chat.rooms.values()].filter((view) => view.notify !== 'none').sort(byActivity);
  // A first visit shows what a room is; a conversation between two shows that less well.
  return (views.find((view) => view.kind === 'room') ?? views[0])?.id;
}
