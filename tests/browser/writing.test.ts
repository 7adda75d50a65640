//! Writing: the caret waits, formatting by keys and buttons, links, code, emoji; and the list stays where one reads.

import { beforeAll, describe, expect, it } from 'vitest';

import { fillRoom } from './support/fill';
import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

withAstridAndBo({ astrid: { permissions: ['clipboard-read', 'clipboard-write'] } });
beforeAll(async () => {
  await meetIn('Harbour');
  await fillRoom(astrid.page, { count: 60, batch: 60 });
  await astrid.message('number 59 ').waitFor();
});

/** How far the newest message ends above the text field; 0 is directly on it, but for the line of who types. */
const distanceToEnd = () =>
  astrid.page.evaluate(() => {
    const feed = document.querySelector('[role=feed]');
    return feed ? Math.round(feed.scrollHeight - feed.scrollTop - feed.clientHeight) : -1;
  });

describe('the text field', () => {
  it('has_the_caret_when_a_room_is_opened_and_takes_what_is_typed_anywhere', async () => {
    await astrid.page.reload();
    await astrid.composer.waitFor();
    await expect.poll(() => astrid.page.evaluate(() => document.activeElement?.id)).toBe('composer');
    await astrid.page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await astrid.page.keyboard.type('ahoy');
    await expect.poll(() => astrid.composer.inputValue()).toBe('ahoy');
    await astrid.composer.fill('');
  });

  it('grows_without_moving_the_list_from_its_end', async () => {
    await expect.poll(distanceToEnd).toBeLessThan(2);
    for (const line of ['one', 'two', 'three', 'four', 'five', 'six']) {
      await astrid.page.keyboard.type(line);
      await astrid.page.keyboard.press('Shift+Enter');
      await expect.poll(distanceToEnd).toBeLessThan(2);
    }
    await astrid.page.keyboard.type('and on in a line that is there already');
    await expect.poll(distanceToEnd).toBeLessThan(2);
    await astrid.composer.fill('');
    await expect.poll(distanceToEnd).toBeLessThan(2);
  });

  it('formats_by_keys_and_takes_it_back_by_undo', async () => {
    const { keyboard } = astrid.page;
    await keyboard.type('low tide');
    await keyboard.press('Shift+Control+ArrowLeft');
    await keyboard.press('Control+b');
    await expect.poll(() => astrid.composer.inputValue()).toBe('low **tide**');
    await keyboard.press('Control+z');
    await expect.poll(() => astrid.composer.inputValue()).toBe('low tide');
    await keyboard.press('Control+a');
    await keyboard.press('Control+Shift+Digit8');
    await keyboard.press('End');
    await keyboard.press('Shift+Enter');
    await keyboard.type('high');
    await expect.poll(() => astrid.composer.inputValue()).toBe('- low tide\n- high');
    await keyboard.press('Enter');
    await bo.message('high').locator('li').nth(1).waitFor();
  });

  it('shows_a_bar_for_those_who_want_one', async () => {
    await astrid.page.getByRole('button', { name: 'Formatting' }).click();
    await astrid.page.keyboard.type('rope');
    await astrid.page.keyboard.press('Control+a');
    await astrid.page.getByRole('toolbar').getByRole('button', { name: 'Italic' }).click();
    await expect.poll(() => astrid.composer.inputValue()).toBe('*rope*');
    await astrid.page.getByRole('button', { name: 'Formatting' }).click();
    await expect.poll(() => astrid.page.getByRole('toolbar').count()).toBe(0);
    await astrid.composer.fill('');
  });

  it('makes_a_link_of_words_and_a_pasted_address', async () => {
    await astrid.page.evaluate(() => navigator.clipboard.writeText('https://tides.example.org/'));
    await astrid.page.keyboard.type('the tides');
    await astrid.page.keyboard.press('Shift+Control+ArrowLeft');
    await astrid.page.keyboard.press('Control+v');
    await expect.poll(() => astrid.composer.inputValue()).toBe('the [tides](https://tides.example.org/)');
    await astrid.page.keyboard.press('Enter');
    expect(await bo.message('the tides').getByRole('link', { name: 'tides' }).getAttribute('href')).toBe('https://tides.example.org/');
  });

  it('starts_a_line_in_code_and_sends_it_when_it_is_closed', async () => {
    await astrid.page.keyboard.type('```rust');
    await astrid.page.keyboard.press('Enter');
    await astrid.page.keyboard.type('fn main() {}');
    await astrid.page.keyboard.press('Enter');
    await astrid.page.keyboard.type('```');
    await astrid.page.keyboard.press('Enter');
    const code = astrid.message('fn main');
    await code.getByText('rust', { exact: true }).waitFor();
    await code.getByRole('button', { name: 'Copy', exact: true }).click();
    await expect.poll(() => astrid.page.evaluate(async () => (await navigator.clipboard.readText()).trim())).toBe('fn main() {}');
  });

  it('offers_all_emoji_in_ones_own_tone_and_those_used_last', async () => {
    const { page } = astrid;
    const palette = page.getByRole('dialog', { name: 'Emoji' });
    await page.getByRole('button', { name: 'Emoji', exact: true }).click();
    await palette.getByRole('button', { name: 'Dark skin tone', exact: true }).click();
    await palette.getByLabel('Search emoji').fill('waving hand');
    await palette.getByRole('button', { name: 'waving hand' }).first().click();
    await expect.poll(() => astrid.composer.inputValue()).toBe('👋🏿');
    await page.getByRole('button', { name: 'Emoji', exact: true }).click();
    await palette.getByRole('button', { name: 'Recently used' }).click();
    await palette.getByRole('button', { name: '👋🏿' }).waitFor();
    await palette.getByRole('button', { name: 'Flags' }).click();
    await expect.poll(() => palette.locator('.grid button').count()).toBeGreaterThan(200);
    await page.keyboard.press('Escape');
    await astrid.composer.fill('');
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
