//! The first minute of a demo, as a guest sees it: what is said at the door, where one lands, who answers.

import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import type { Person } from './support/person';
import { astrid, bo, server, withAstridAndBo } from './support/scene';

const BOT = 'A bot of this demo';

/** What was said in answer to these words. */
function answerTo({ page }: Person, words: string): Locator {
  return page.locator('article[data-seq]').filter({ has: page.locator('.quote', { hasText: words }) });
}

withAstridAndBo({ flags: ['--demo'] });

describe('a guest of a demo', () => {
  it('reads_at_the_door_that_all_others_are_bots_and_nothing_of_administrators', async () => {
    await astrid.page.goto(server.url);
    await astrid.page.getByText('everybody you meet here is a bot').waitFor();
    expect(await astrid.page.getByText('no administrator').count()).toBe(0);
  });

  it('lands_in_the_first_room_whose_topic_says_so_too', async () => {
    await astrid.signUp(server.url, 'Astrid Holm');
    await astrid.page.getByRole('heading', { name: 'Town square', level: 1 }).waitFor();
    await astrid.page.getByText('everybody here is a bot').waitFor();
  });

  it('is_answered_by_one_bot_who_quotes_and_names_the_guest', async () => {
    await astrid.say('hello');
    await answerTo(astrid, 'hello').filter({ hasText: /bots?/ }).waitFor();
    const said = astrid.page.locator('article[data-seq]').filter({ has: astrid.page.locator('.body', { hasText: /^hello$/ }) });
    await said.locator('.reactions button').waitFor();
    // Not all is answered. Answers come in order: with the one to the last message, all others are there.
    for (const words of ['the sky is blue', 'and the grass is green', '@tomas is the radio fine?']) await astrid.say(words);
    await answerTo(astrid, 'is the radio fine?').getByRole('button', { name: 'Tomas Keller', exact: true }).waitFor();
    expect(await answerTo(astrid, 'hello').count()).toBe(1);
    expect(await answerTo(astrid, 'the sky').count()).toBe(0);
    expect(await answerTo(astrid, 'the grass').count()).toBe(0);
    expect(astrid.errors).toEqual([]);
  });

  it('is_told_of_a_key_for_all_keys_that_also_works_while_one_writes', async () => {
    await astrid.page.getByRole('link', { name: /Mira Voss/ }).click();
    await astrid.message('Press Alt+H for the keys').waitFor();
    await astrid.composer.press('Alt+h');
    await astrid.page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await astrid.page.keyboard.press('Escape');
    await astrid.page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await astrid.composer.inputValue()).toBe('');
    await astrid.open('Town square');
  });

  it('sees_on_every_card_that_somebody_is_a_bot', async () => {
    await astrid.page.getByRole('button', { name: 'Mira Voss', exact: true }).first().click();
    await astrid.page.getByRole('dialog', { name: /Mira Voss/ }).getByText(BOT).waitFor();
    await astrid.page.keyboard.press('Escape');
  });

  it('is_met_by_other_guests_there', async () => {
    await bo.signUp(server.url, 'Bo Lind');
    await bo.page.getByRole('heading', { name: 'Town square', level: 1 }).waitFor();
    await bo.say('hi, everybody');
    await answerTo(bo, 'hi, everybody').waitFor();
  });
});
