//! Promises of the emoji list's pure parts.

import { describe, expect, it } from 'vitest';

import { findEmoji, used, withTone, type Emoji } from './emoji';

const emoji = (character: string, name: string, label: string, tags = '', takesTone = false): Emoji => ({ character, name, label, tags, takesTone });
const GROUPS = [
  [emoji('🎉', 'tada', 'party popper', 'celebration hooray'), emoji('🍑', 'peach', 'peach'), emoji('🥳', 'partying_face', 'partying face')],
  [emoji('👋', 'wave', 'waving hand', 'hello', true), emoji('👩‍🚀', 'woman_astronaut', 'woman astronaut', 'space', true)],
];

describe('emoji', () => {
  it('are_found_by_short_name_by_label_and_by_what_they_are_about', () => {
    expect(findEmoji(GROUPS, 'tad', 9).map(({ name }) => name)).toEqual(['tada']);
    expect(findEmoji(GROUPS, 'party', 9).map(({ name }) => name)).toEqual(['partying_face', 'tada']);
    expect(findEmoji(GROUPS, 'hooray', 9).map(({ name }) => name)).toEqual(['tada']);
    expect(findEmoji(GROUPS, 'astronaut', 9).map(({ name }) => name)).toEqual(['woman_astronaut']);
  });

  it('take_a_skin_tone_where_they_have_skin', () => {
    expect(withTone(GROUPS[1]?.[0] ?? emoji('', '', ''), '🏽')).toBe('👋🏽');
    expect(withTone(GROUPS[1]?.[1] ?? emoji('', '', ''), '🏿')).toBe('👩🏿‍🚀');
    expect(withTone(GROUPS[0]?.[0] ?? emoji('', '', ''), '🏽')).toBe('🎉');
  });

  it('that_were_used_last_come_first_and_once', () => {
    expect(used(['a', 'b', 'c'], 'c')).toEqual(['c', 'a', 'b']);
    expect(used(Array.from({ length: 40 }, (_, at) => String(at)), 'x')).toHaveLength(24);
  });
});
