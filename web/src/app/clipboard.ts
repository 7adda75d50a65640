//! Copying, with a word that it was done; a browser that refuses is told of, too.

import { formatRoute } from '../model/route';
import type { MessageView } from '../protocol/generated/chat';
import type { Folkmoot } from './folkmoot.svelte';

export async function copyText(folkmoot: Folkmoot, text: string): Promise<void> {
  if (await folkmoot.attempt(navigator.clipboard.writeText(text))) folkmoot.toast = { text: folkmoot.strings.copied };
}

export function copyLink(folkmoot: Folkmoot, { room, seq }: Pick<MessageView, 'room' | 'seq'>): Promise<void> {
  return copyText(folkmoot, location.origin + formatRoute({ name: 'room', room, seq }));
}
