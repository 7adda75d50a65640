//! Messages that are made to be hard to show, as long as a message may be: whoever is in the room goes on reading and writing.

import { beforeAll, describe, expect, it } from 'vitest';

import { call, openRoomOf } from './support/call';
import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

const CHARS_MAX = 8_000;
/** On a busy machine; a page that has to make millions of elements takes minutes. */
const SHOWN_MS_MAX = 15_000;

const full = (part: string) => part.repeat(Math.floor(CHARS_MAX / part.length));
const columns = Math.floor(CHARS_MAX / 6);

const BODIES: readonly [what: string, body: string][] = [
  ['thousands_of_quotes_in_each_other', full('>')],
  ['thousands_of_lists_in_each_other', full('1. ').trim()],
  ['a_table_of_millions_of_cells', `${'|a'.repeat(columns)}|\n${'|-'.repeat(columns)}|\n${'|\n'.repeat(columns - 2)}|`],
  ['a_table_of_many_short_rows', `${'|a'.repeat(60)}|\n${'|-'.repeat(60)}|\n${'|\n'.repeat(3_800)}|`],
  ['nothing_but_opening_brackets', full('[')],
  ['nothing_but_marks_of_emphasis', full('_a')],
  ['one_word', full('x')],
  ['one_line_of_code', `\`\`\`rust\n${'let a = 1; '.repeat(700)}\n\`\`\``],
  ['marks_upon_one_letter', `Z${'\u0301'.repeat(CHARS_MAX - 1)}`],
];

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
});

describe('a message of', () => {
  it.each(BODIES)('%s_is_shown_and_the_room_goes_on', async (what, body) => {
    const began = Date.now();
    await call(bo.page, [['message.send', { room: openRoomOf(bo.page), key: `key-${what}`.slice(0, 30), body }]]);
    await bo.say(`Behind ${what}.`);
    await astrid.message(`Behind ${what}.`).waitFor();
    await astrid.say(`Seen ${what}.`);
    await bo.message(`Seen ${what}.`).waitFor();
    expect(Date.now() - began).toBeLessThan(SHOWN_MS_MAX);
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });

  it('each_of_these_lets_the_room_be_opened_anew', async () => {
    await astrid.page.reload();
    const last = BODIES.at(-1)?.[0] ?? '';
    await astrid.message(`Seen ${last}.`).waitFor();
    await astrid.everything();
    await astrid.page.setViewportSize({ width: 390, height: 844 });
    expect(await astrid.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
    await astrid.page.setViewportSize({ width: 1280, height: 800 });
    expect(astrid.errors).toEqual([]);
  });
});
