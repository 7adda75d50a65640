//! Removing somebody from a room, and bringing them back.

import type { RoomId, UserId } from '../protocol/generated/chat';
import type { Chat } from './chat.svelte';
import type { Folkmoot } from './folkmoot.svelte';

export interface Removal {
  room: RoomId;
  user: UserId;
  /** What they are called. */
  name: string;
  action: 'kick' | 'ban';
}

export async function removeMember(folkmoot: Folkmoot, chat: Chat, removal: Removal): Promise<void> {
  const { room, user, name, action } = removal;
  if (action === 'kick') await chat.link.call('room.kick', { room, user });
  else await chat.link.call('room.ban', { room, user, on: true });
  const text = folkmoot.strings;
  folkmoot.toast = {
    text: action === 'kick' ? text.was_kicked(name) : text.was_banned(name),
    action: { label: text.undo, run: () => void folkmoot.attempt(bringBack(chat, removal)) },
  };
}

async function bringBack(chat: Chat, { room, user, action }: Removal): Promise<void> {
  if (action === 'ban') await chat.link.call('room.ban', { room, user, on: false });
  await chat.link.call('room.add', { room, user });
}
