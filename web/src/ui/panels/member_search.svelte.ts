//! Members of a room, looked for by the beginning of their names while one types it.

import type { Chat } from '../../app/chat.svelte';
import type { Conversation } from '../../app/conversation.svelte';
import { findMembers } from '../../app/members';
import type { MemberView } from '../../protocol/generated/chat';

const PAUSE_MS = 150;

export class MemberSearch {
  prefix = $state('');
  /** Undefined where nobody is looked for. */
  found = $state.raw<readonly MemberView[]>();

  /** As long as the component stands that calls it. */
  follow(chat: Chat, conversation: Conversation): void {
    $effect(() => {
      const wanted = this.prefix.trim();
      // Whoever's role changes meanwhile is looked for again.
      void conversation.members;
      if (wanted === '') {
        this.found = undefined;
        return;
      }
      let isLate = false;
      const timer = setTimeout(async () => {
        const members = await findMembers(chat, conversation, wanted).catch(() => undefined);
        if (!isLate && members) this.found = members;
      }, PAUSE_MS);
      return () => {
        isLate = true;
        clearTimeout(timer);
      };
    });
  }
}
