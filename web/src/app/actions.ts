//! What a person can do in a room, apart from writing: one function per action, each one rpc. Failures are thrown to
//! whoever asked, who shows them where they belong.

import type { Methods } from '../protocol/generated/methods';
import type { MessageView, RoomAccess, RoomId, RoomView, UserId } from '../protocol/generated/chat';
import type { Chat } from './chat.svelte';

export async function createRoom(chat: Chat, name: string, topic: string, access: RoomAccess): Promise<RoomView> {
  const view = await chat.link.call('room.create', topic === '' ? { name } : { name, topic });
  chat.add(view);
  // A room begins hidden.
  if (access !== 'hidden') await setAccess(chat, view.id, access);
  return view;
}

export async function openDirect(chat: Chat, user: UserId): Promise<RoomView> {
  const view = await chat.link.call('direct.open', { user });
  chat.add(view);
  return view;
}

/** Off one's list, until somebody writes there. */
export async function hideDirect(chat: Chat, room: RoomId): Promise<void> {
  await chat.link.call('direct.hide', { room });
  chat.drop(room, 'left');
}

/** Says what one is up to; without emoji and words, nothing any more. */
export async function setStatus(chat: Chat, emoji: string, text: string, until?: number): Promise<void> {
  chat.setProfile(await chat.link.call('status.set', until === undefined ? { emoji, text } : { emoji, text, until }));
}

/** Keeps somebody from writing to oneself alone, or lets them again. */
export async function blockUser(chat: Chat, user: UserId, on: boolean): Promise<void> {
  await chat.link.call('user.block', { user, on });
}

export async function acceptInvite(chat: Chat, code: string): Promise<RoomView> {
  const view = await chat.link.call('invite.accept', { code });
  chat.add(view);
  return view;
}

/** Comes into an open room. */
export async function joinRoom(chat: Chat, room: RoomId): Promise<void> {
  chat.add(await chat.link.call('room.join', { room }));
}

/** Says who finds a room and comes in. */
export async function setAccess(chat: Chat, room: RoomId, access: RoomAccess): Promise<void> {
  await chat.link.call('room.set_access', { room, access });
}

export async function leaveRoom(chat: Chat, room: RoomId): Promise<void> {
  await chat.link.call('room.leave', { room });
  chat.drop(room, 'left');
}

/** Closes a room for writing, or opens it again. */
export async function archiveRoom(chat: Chat, room: RoomId, on: boolean): Promise<void> {
  chat.add(await chat.link.call('room.archive', { room, on }));
}

/** With everything that was said in it, for good. */
export async function deleteRoom(chat: Chat, room: RoomId): Promise<void> {
  await chat.link.call('room.delete', { room });
  chat.drop(room, 'deleted');
}

export async function editMessage(chat: Chat, message: MessageView, body: string): Promise<void> {
  const { room, seq } = message;
  const { edited_at } = await chat.link.call('message.edit', { room, seq, body });
  apply(chat, room, { type: 'edited', room, seq, body, edited_at, mentions: message.mentions });
}

export async function deleteMessage(chat: Chat, message: MessageView): Promise<void> {
  const { room, seq } = message;
  await chat.link.call('message.delete', { room, seq });
  apply(chat, room, { type: 'deleted', room, seq, by: chat.me.id, at: Date.now() });
}

export async function react(chat: Chat, message: MessageView, emoji: string): Promise<void> {
  const { room, seq } = message;
  const on = !message.reactions.some((reaction) => reaction.emoji === emoji && reaction.mine);
  await chat.link.call('message.react', { room, seq, emoji, on });
  apply(chat, room, { type: 'reaction', room, seq, user: chat.me.id, emoji, on });
}

/** Moderators keep a room's list; two people keep theirs together. */
export function mayPin(view: RoomView): boolean {
  return view.archived !== true && (view.kind === 'direct' || view.role !== 'member');
}

/** For everybody in the room. What it looks like then, the event says that follows. */
export async function pinMessage(chat: Chat, { room, seq }: MessageView, on: boolean): Promise<void> {
  await chat.link.call('message.pin', { room, seq, on });
}

/** For oneself. */
export async function saveMessage(chat: Chat, { room, seq }: MessageView, on: boolean): Promise<void> {
  await chat.link.call('message.save', { room, seq, on });
  chat.saved.apply(room, seq, on);
}

/** Shows the result at once; the event that follows finds it already applied. */
function apply(chat: Chat, room: RoomId, event: Parameters<ReturnType<Chat['conversation']>['apply']>[0]): void {
  const view = chat.rooms.get(room);
  if (view) chat.conversation(view).apply(event);
}

export async function markRead(chat: Chat, room: RoomId, seq: number): Promise<void> {
  const reply: Methods['read.set']['reply'] = await chat.link.call('read.set', { room, seq });
  chat.setRead(room, reply.read_seq, reply.mentions);
}
