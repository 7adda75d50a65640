import { expect, test } from 'vitest';

import { isStricter } from './keeping';

test('a_limit_that_is_new_or_lower_deletes_messages', () => {
  expect(isStricter({ days: 30 }, {})).toBe(true);
  expect(isStricter({ days: 29 }, { days: 30 })).toBe(true);
  expect(isStricter({ days: 60, messages: 10 }, { days: 30 })).toBe(true);
});

test('a_limit_that_is_gone_or_higher_deletes_none', () => {
  expect(isStricter({}, { days: 30 })).toBe(false);
  expect(isStricter({ days: 30, messages: 10 }, { days: 30, messages: 10 })).toBe(false);
  expect(isStricter({ messages: 11 }, { days: 30, messages: 10 })).toBe(false);
});
