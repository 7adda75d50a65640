//! Keeping people away: removing them from a room, blocking them, hiding a conversation; each with its way back.

import { titleOf } from '../model/rooms';
import type { RoomId, RoomView, UserId } from '../protocol/generated/chat';
import { blockUser, hideDirect, openDirect } from './actions';
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
    action: { label: text.undo, run: () => folkmoot.attempt(bringBack(chat, removal)) },
  };
}

async function bringBack(chat: Chat, { room, user, action }: Removal): Promise<void> {
  if (action === 'ban') await chat.link.call('room.ban', { room, user, on: false });
  await chat.link.call('room.add', { room, user });
}

/** Somebody is kept from writing to oneself alone; a moment's anger can be taken back at once. */
export async function blockPerson(folkmoot: Folkmoot, chat: Chat, user: UserId, name: string): Promise<void> {
  await blockUser(chat, user, true);
  folkmoot.toast = {
    text: folkmoot.strings.was_blocked(name),
    action: { label: folkmoot.strings.undo, run: () => folkmoot.attempt(blockUser(chat, user, false)) },
  };
}

export async function hideConversation(folkmoot: Folkmoot, chat: Chat, view: RoomView): Promise<void> {
  await hideDirect(chat, view.id);
  const { peer } = view;
  folkmoot.toast = {
    text: folkmoot.strings.direct_hidden(titleOf(view)),
    ...(peer ? { action: { label: folkmoot.strings.undo, run: () => folkmoot.attempt(openDirect(chat, peer.id)) } } : {}),
  };
}
