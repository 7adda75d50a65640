//! The members of a room as far as a page needs them: the first page for completion and the panel, more on demand.

import { MEMBERS_PAGE_MAX } from '../protocol/generated/limits';
import type { MemberView } from '../protocol/generated/chat';
import type { Chat } from './chat.svelte';
import type { Conversation } from './conversation.svelte';

/** Fetches the members as far as they were fetched before, at least the first page, unless what is at hand is up to date. */
export async function refreshMembers(chat: Chat, conversation: Conversation): Promise<void> {
  if (!conversation.membersStale) return;
  // Whoever comes while the answer is on its way makes it stale again.
  conversation.membersStale = false;
  try {
    const { room } = conversation;
    let reply = await chat.link.call('room.members', { room, limit: MEMBERS_PAGE_MAX });
    const members = [...reply.members];
    while (reply.next !== undefined && members.length < conversation.members.length) {
      reply = await chat.link.call('room.members', { room, after: reply.next, limit: MEMBERS_PAGE_MAX });
      members.push(...reply.members);
    }
    chat.people.meet(members);
    conversation.members = members;
    conversation.membersAfter = reply.next;
  } catch (failure) {
    conversation.membersStale = true;
    throw failure;
  }
}

/** Those whose name, or a word of it, begins so: also of the pages that were not fetched. */
export async function findMembers(chat: Chat, conversation: Conversation, prefix: string): Promise<readonly MemberView[]> {
  const { members } = await chat.link.call('room.members', { room: conversation.room, prefix, limit: MEMBERS_PAGE_MAX });
  chat.people.meet(members);
  return members;
}

export async function moreMembers(chat: Chat, conversation: Conversation): Promise<void> {
  const after = conversation.membersAfter;
  if (after === undefined) return;
  const reply = await chat.link.call('room.members', { room: conversation.room, after, limit: MEMBERS_PAGE_MAX });
  // Asked for twice, or the list was fetched anew meanwhile: it goes on elsewhere.
  if (conversation.membersAfter !== after) return;
  chat.people.meet(reply.members);
  conversation.members = [...conversation.members, ...reply.members];
  conversation.membersAfter = reply.next;
}
