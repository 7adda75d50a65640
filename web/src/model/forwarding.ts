//! A message that is passed on, as text: who said it, what, and where it stands.

import { BODY_CHARS_MAX } from '../protocol/generated/limits';

export function forwarded(body: string, name: string, address: string): string {
  const head = `**${name}** [↗](${address})\n`;
  const quote = body.split('\n').map((line) => `> ${line}`).join('\n');
  const room = BODY_CHARS_MAX - head.length;
  return head + (quote.length > room ? `${quote.slice(0, room - 1)}…` : quote);
}
