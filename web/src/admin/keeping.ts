//! Limits on how long messages are kept, compared.

import type { RetentionRule } from '../protocol/generated/chat';

/** Whether messages that are kept under `before` may be deleted under `rule`. */
export function isStricter(rule: RetentionRule, before: RetentionRule): boolean {
  const shorter = (now: number | undefined, once: number | undefined) => now !== undefined && now < (once ?? Infinity);
  return shorter(rule.days, before.days) || shorter(rule.messages, before.messages);
}
