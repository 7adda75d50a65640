//! A thread: a message and all that grew out of it, beside the room. It follows what happens, and one answers in it.

import { beforeAll, describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { fillRoom } from './support/fill';
import type { Person } from './support/person';
import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

const BETWEEN = 120;

withAstridAndBo({ astrid: CHECKED });
beforeAll(async () => {
  await meetIn('Harbour');
  await astrid.say('Who brings the coffee?');
  await bo.message('the coffee').waitFor();
  await bo.act('the coffee', 'Reply');
  await bo.say('I do.');
  await astrid.message('I do.').waitFor();
  // Far below: the room shows none of it when somebody answers.
  await fillRoom(bo.page, { count: BETWEEN, batch: 60 });
  // Whose list is still growing is taken along to its end.
  for (const each of [astrid, bo]) await each.message(`number ${BETWEEN - 1} `).waitFor();
});

const panel = (person: Person) => person.page.getByRole('complementary', { name: 'Thread' });
const said = async (person: Person) =>
  (await panel(person).locator('[data-thread-seq] .body').allTextContents()).map((text) => text.trim());

describe('a thread', () => {
  it('shows_a_message_with_all_answers_however_far_apart', async () => {
    await bo.page.getByRole('feed').evaluate((feed) => feed.scrollTo(0, 0));
    await bo.message('I do.').waitFor();
    await bo.act('I do.', 'Reply');
    await bo.say('And *tea*.');
    await bo.message('And tea').waitFor();
    await bo.act('And tea', 'Show thread');
    await expect.poll(() => said(bo)).toEqual(['Who brings the coffee?', 'I do.', 'And tea.']);
    await panel(bo).getByText('2 replies').waitFor();
    await panel(bo).getByText('Bo Lind: I do.').waitFor();
  });

  it('follows_what_others_answer_change_and_delete', async () => {
    await astrid.act('And tea', 'Reply');
    await astrid.say('For me, please.');
    await expect.poll(() => said(bo)).toEqual(['Who brings the coffee?', 'I do.', 'And tea.', 'For me, please.']);
    await astrid.act('For me', 'Edit');
    await astrid.page.getByRole('textbox', { name: 'Edit message' }).fill('For us, please.');
    await astrid.page.keyboard.press('Enter');
    await expect.poll(async () => (await said(bo)).at(-1)).toBe('For us, please.');
    await astrid.act('For us', 'Delete');
    await panel(bo).getByText('This message was deleted.').waitFor();
  });

  it('is_answered_in_by_a_field_of_its_own_whose_draft_is_kept', async () => {
    const field = panel(bo).getByRole('textbox', { name: 'Reply…' });
    await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true);
    await field.fill('Eight cups');
    await panel(bo).getByRole('button', { name: 'Close' }).click();
    await bo.act('And tea', 'Show thread');
    await expect.poll(() => field.inputValue()).toBe('Eight cups');
    await field.press('Enter');
    await expect.poll(async () => (await said(bo)).at(-1)).toBe('Eight cups');
    await astrid.message('Eight cups').getByRole('button', { name: /Go to the message by Astrid Holm/ }).waitFor();
    expect(await field.inputValue()).toBe('');
  });

  it('opens_by_keyboard_and_closes_by_escape_and_axe_finds_nothing', async () => {
    const { page } = astrid;
    await astrid.message('Eight cups').focus();
    await page.keyboard.press('t');
    await panel(astrid).getByText('4 replies').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await panel(astrid).waitFor({ state: 'detached' });
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('composer');
  });

  it('says_below_its_message_how_many_answers_there_are_and_who_gave_the_last', async () => {
    // Its answers quote it: the first is meant.
    const below = (person: Person, said: string, words: string | RegExp) =>
      person.page.locator('article[data-seq]').filter({ hasText: said }).first().getByRole('button', { name: words });
    await astrid.say('Who has the keys?');
    await astrid.allSent();
    await bo.say('Which ones?');
    await bo.act('Who has the keys', 'Reply');
    await bo.say('Not me.');
    await below(astrid, 'Who has the keys', /^1 reply last by Bo Lind, \d\d:\d\d$/).waitFor();
    await astrid.act('Not me', 'Reply');
    await astrid.say('Found them.');
    for (const each of [astrid, bo]) await below(each, 'Who has the keys', /^2 replies last by Astrid Holm, \d\d:\d\d$/).waitFor();
    await astrid.act('Found them', 'Delete');
    await below(bo, 'Who has the keys', /^1 reply last by Bo Lind/).waitFor();
    // A single one right below says itself what it answers.
    await astrid.say('Who has the boat?');
    await bo.act('Who has the boat', 'Reply');
    await bo.say('I do.');
    await astrid.message('I do.').locator('.quote').waitFor();
    expect(await below(astrid, 'Who has the boat', /repl/).count()).toBe(0);
    // What is not loaded is not counted.
    await bo.page.goto(new URL(bo.page.url().replace(/(room\/[^/]+).*/, '$1/1')).href);
    await below(bo, 'the coffee', 'Show thread').getByText('Show thread').waitFor();
  });

  it('leads_to_where_a_message_stands_in_the_room', async () => {
    await astrid.page.getByRole('feed').evaluate((feed) => feed.scrollTo(0, feed.scrollHeight));
    await astrid.act('Eight cups', 'Show thread');
    await panel(astrid).getByRole('button', { name: /Go to the message by Bo Lind/ }).first().click();
    await astrid.message('I do.').waitFor();
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
