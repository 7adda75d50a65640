//! The members of a room as far as a page needs them: the first page for completion and the panel, more on demand.

import { MEMBERS_PAGE_MAX } from '../protocol/generated/limits';
import type { MemberView, RoomId, UserId } from '../protocol/generated/chat';
import type { Chat } from './chat.svelte';

export interface MembersPage {
  members: MemberView[];
  next: UserId | undefined;
}

export async function membersOf(chat: Chat, room: RoomId, after?: UserId): Promise<MembersPage> {
  const request = after === undefined ? { room, limit: MEMBERS_PAGE_MAX } : { room, after, limit: MEMBERS_PAGE_MAX };
  const reply = await chat.link.call('room.members', request);
  chat.people.meet(reply.members);
  return { members: reply.members, next: reply.next };
}
