//! Finding what was said: in a room and everywhere, by mouse and by keys alone, with the list staying while one reads.

import { beforeAll, describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { fillRoom } from './support/fill';
import type { Person } from './support/person';
import { astrid, bo, server, withAstridAndBo } from './support/scene';

/** So many stand between the end of the room and what is searched for: several pages of history. */
const BETWEEN = 1_500;

withAstridAndBo({ astrid: CHECKED });
beforeAll(async () => {
  await astrid.signUp(server.url, 'Astrid Holm');
  await astrid.createRoom('Attic');
  await astrid.say('The **spare windlass** is under the Café table 🎉');
  await astrid.say('明日は東京タワーに行きます');
  await astrid.createRoom('Harbour');
  await bo.joinBy(await astrid.invite(), 'Bo Lind');
  await bo.say('Who has the windlass of the red boat?');
  await astrid.message('red boat').waitFor();
  await fillRoom(astrid.page, { count: BETWEEN, batch: 200 });
  await astrid.message(`number ${BETWEEN - 1} `).waitFor({ timeout: 60_000 });
});

const panel = (person: Person) => person.page.getByRole('complementary', { name: 'Search' });
const hits = (person: Person) => panel(person).getByRole('list', { name: 'Messages found' }).getByRole('listitem');

async function search(person: Person, query: string): Promise<void> {
  if (!(await panel(person).isVisible())) await person.page.getByRole('button', { name: 'Search' }).click();
  await panel(person).getByRole('searchbox').fill(query);
  await panel(person).getByRole('searchbox').press('Enter');
}

/** The texts of what is marked in the list. */
const marks = (person: Person) => panel(person).locator('mark').allTextContents();

describe('searching', () => {
  it('finds_in_this_room_and_goes_far_back_to_the_message', async () => {
    await search(astrid, 'WINDLASS boat');
    await panel(astrid).getByText('1 message found').waitFor();
    expect(await marks(astrid)).toEqual(['windlass', 'boat']);
    expect(await astrid.message('red boat').count()).toBe(0);
    await hits(astrid).getByRole('button').click();
    await astrid.message('red boat').waitFor();
    expect(await astrid.message('red boat').evaluate((row) => {
      const { top, bottom } = row.getBoundingClientRect();
      return top >= 0 && bottom <= window.innerHeight;
    })).toBe(true);
    expect(astrid.page.url()).toMatch(/\/room\/\w+\/1$/);
  });

  it('keeps_every_key_of_what_is_typed_after_a_hit_was_opened', async () => {
    const field = panel(astrid).getByRole('searchbox');
    await field.press('Control+a');
    // Slower than the pause after which is asked: answers come between the keys.
    await field.pressSequentially('windlass', { delay: 300 });
    expect(await field.inputValue()).toBe('windlass');
    await panel(astrid).getByText('1 message found').waitFor();
  });

  it('finds_everywhere_and_keeps_the_list_when_it_leads_into_another_room', async () => {
    await search(astrid, 'windlass');
    await panel(astrid).getByRole('button', { name: 'Everywhere' }).click();
    await panel(astrid).getByText('2 messages found').waitFor();
    await hits(astrid).filter({ hasText: 'Attic' }).getByRole('button').click();
    await astrid.page.getByRole('heading', { name: 'Attic', level: 1 }).waitFor();
    await astrid.message('spare windlass').waitFor();
    await expect.poll(() => hits(astrid).count()).toBe(2);
    // The keyboard goes on from the hit that was opened.
    await expect.poll(() => astrid.page.evaluate(() => document.activeElement?.hasAttribute('data-hit'))).toBe(true);
  });

  it('offers_everywhere_one_key_away_where_a_room_has_no_hit', async () => {
    await astrid.open('Attic');
    await panel(astrid).getByRole('button', { name: 'In this room' }).click();
    const field = panel(astrid).getByRole('searchbox');
    await field.fill('boat');
    const offer = panel(astrid).getByRole('button', { name: 'Not in Attic. Search everywhere' });
    await offer.waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await field.press('Enter');
    await hits(astrid).filter({ hasText: 'red boat' }).waitFor();
    expect(await offer.count()).toBe(0);
    // By mouse and by arrows as well; the keyboard stays in the field.
    await panel(astrid).getByRole('button', { name: 'In this room' }).click();
    await offer.waitFor();
    await field.press('ArrowDown');
    await astrid.page.keyboard.press('Enter');
    await hits(astrid).filter({ hasText: 'red boat' }).waitFor();
    await expect.poll(() => field.evaluate((input) => document.activeElement === input)).toBe(true);
    await astrid.open('Harbour');
  });

  it('marks_what_matches_in_any_script_and_behind_emoji', async () => {
    await search(astrid, '東京タワー');
    await panel(astrid).getByText('1 message found').waitFor();
    expect(await marks(astrid)).toEqual(['東京タワー']);
    await search(astrid, 'cafe from:me in:attic');
    await panel(astrid).getByText('Café').waitFor();
    expect(await marks(astrid)).toEqual(['Café']);
  });

  it('shows_further_pages_on_demand', async () => {
    await search(astrid, 'number in:harbour');
    await panel(astrid).getByText('The newest 30 messages').waitFor();
    await panel(astrid).getByRole('button', { name: 'Show older messages' }).click();
    await panel(astrid).getByText('The newest 60 messages').waitFor();
    const texts = await hits(astrid).allTextContents();
    expect(new Set(texts).size).toBe(60);
  });

  it('says_when_there_is_nothing_and_when_a_query_makes_no_sense', async () => {
    await search(astrid, 'zeppelin');
    await panel(astrid).getByText('Nothing found.').waitFor();
    await search(astrid, '"open');
    await panel(astrid).getByRole('alert').filter({ hasText: 'quotation mark' }).waitFor();
  });

  it('works_by_keys_alone', async () => {
    const { keyboard } = astrid.page;
    await panel(astrid).getByRole('button', { name: 'Close' }).click();
    await astrid.open('Harbour');
    await astrid.page.locator('article').last().focus();
    await keyboard.press('/');
    await keyboard.type('windlass');
    await keyboard.press('Enter');
    await panel(astrid).getByText('2 messages found').waitFor();
    await keyboard.press('ArrowDown');
    await keyboard.press('ArrowDown');
    await keyboard.press('ArrowDown');
    await keyboard.press('ArrowUp');
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await astrid.page.getByRole('heading', { name: 'Attic', level: 1 }).waitFor();
    // The panel comes with the other room, and goes on from the hit that led there.
    await astrid.page.locator('[data-hit]:focus').waitFor();
    await keyboard.press('ArrowUp');
    await keyboard.press('Enter');
    await astrid.page.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    await astrid.message('red boat').waitFor();
    await keyboard.press('Escape');
    await panel(astrid).waitFor({ state: 'detached' });
    await expect.poll(() => astrid.page.evaluate(() => document.activeElement?.id)).toBe('composer');
  });

  it('finds_nothing_of_rooms_one_is_not_in', async () => {
    await search(bo, 'windlass');
    await panel(bo).getByRole('button', { name: 'Everywhere' }).click();
    await panel(bo).getByText('1 message found').waitFor();
    await search(bo, 'spare');
    await panel(bo).getByText('Nothing found.').waitFor();
  });

  it('shows_either_the_list_or_the_messages_on_a_phone', async () => {
    await bo.page.setViewportSize({ width: 390, height: 844 });
    await search(bo, 'windlass');
    await hits(bo).getByRole('button').click();
    await bo.message('red boat').waitFor();
    await expect.poll(() => panel(bo).count()).toBe(0);
    expect(bo.errors).toEqual([]);
  });

  it('has_nothing_for_axe_to_find_in_either_theme', async () => {
    await search(astrid, 'windlass');
    await panel(astrid).getByText('2 messages found').waitFor();
    await hits(astrid).first().getByRole('button').click();
    expect(await violations(astrid.page)).toEqual([]);
    await search(astrid, '"open');
    await panel(astrid).getByRole('alert').waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await search(astrid, 'zeppelin');
    await panel(astrid).getByText('Nothing found.').waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    expect(astrid.errors).toEqual([]);
  });
});
