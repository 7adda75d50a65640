//! Where the system chooses the colours, grounds and shadows tell nothing: what has the focus, what is chosen and who is
//! there is shown by lines.

import type { Locator } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

withAstridAndBo({ astrid: { forcedColors: 'active', reducedMotion: 'reduce' } });
beforeAll(async () => {
  await meetIn('Harbour');
  await bo.say('Who has the keys, @astrid?');
  await astrid.message('Who has the keys').waitFor();
  await astrid.createRoom('Workshop');
  await astrid.open('Harbour');
});

/** What is seen where an element begins, with a little around it: a ring or a mark, and no caret. The pointer is elsewhere. */
async function seen(element: Locator): Promise<string> {
  const { page } = astrid;
  await page.mouse.move(640, 3);
  const { x, y, height } = (await element.boundingBox()) ?? { x: 0, y: 0, height: 1 };
  const clip = { x: Math.max(0, x - 4), y: Math.max(0, y - 4), width: 14, height: height + 8 };
  return (await page.screenshot({ clip })).toString('base64');
}

async function blur(): Promise<void> {
  await astrid.page.evaluate(() => (document.activeElement as HTMLElement).blur());
}

describe('the focus', () => {
  it('is_seen_around_the_field_in_which_one_writes', async () => {
    const box = astrid.page.locator('.composer .box');
    await blur();
    const without = await seen(box);
    await astrid.composer.focus();
    expect(await seen(box)).not.toBe(without);
  });

  it('is_seen_around_the_field_of_a_thread', async () => {
    await astrid.act('Who has the keys', 'Show thread');
    const panel = astrid.page.getByRole('complementary', { name: 'Thread' });
    const box = panel.locator('.box');
    await panel.getByRole('textbox').focus();
    const focused = await seen(box);
    await blur();
    expect(await seen(box)).not.toBe(focused);
    await panel.getByRole('button', { name: 'Close' }).click();
  });

  it('is_seen_around_a_button_and_a_message', async () => {
    for (const element of [astrid.page.getByRole('button', { name: 'Room settings' }), astrid.message('Who has the keys')]) {
      await blur();
      const without = await seen(element);
      await astrid.page.keyboard.press('Shift');
      await element.focus();
      expect(await seen(element)).not.toBe(without);
    }
  });
});

describe('what is chosen', () => {
  it('is_seen_in_the_palette', async () => {
    await astrid.page.keyboard.press('Control+k');
    const first = astrid.page.getByRole('option').first();
    await first.waitFor();
    const chosen = await seen(first);
    await astrid.page.keyboard.press('ArrowDown');
    await expect.poll(() => first.getAttribute('aria-selected')).toBe('false');
    expect(await seen(first)).not.toBe(chosen);
    await astrid.page.keyboard.press('Escape');
    await first.waitFor({ state: 'detached' });
  });

  it('is_seen_in_the_list_of_rooms', async () => {
    const link = astrid.page.getByRole('link', { name: 'Harbour' });
    const current = await seen(link);
    await astrid.open('Workshop');
    expect(await seen(link)).not.toBe(current);
    await astrid.open('Harbour');
  });
});

describe('who is there', () => {
  it('differs_from_who_is_not', async () => {
    await astrid.page.getByRole('button', { name: 'Members' }).click();
    const mark = astrid.page.getByRole('complementary').locator('.presence').last();
    await expect.poll(() => astrid.page.locator('aside .presence.online').count()).toBe(2);
    const there = await seen(mark);
    await bo.context.close();
    await expect.poll(() => astrid.page.locator('aside .presence.online').count()).toBe(1);
    const away = astrid.page.locator('aside .presence:not(.online)');
    expect(await seen(away)).not.toBe(there);
    expect(astrid.errors).toEqual([]);
  });
});
