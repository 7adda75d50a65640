//! On a phone: fingers hit what they aim at, Enter starts a line, a swipe answers.

import type { CDPSession, Locator } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

const TARGET_PX_MIN = 44;

withAstridAndBo({ bo: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } });
let touch: CDPSession;
beforeAll(async () => {
  await meetIn('Harbour');
  await astrid.say('Swipe me.');
  await bo.message('Swipe me').waitFor();
  touch = await bo.context.newCDPSession(bo.page);
});

/** A finger goes down in the middle of an element, moves, and comes up. */
async function drag(from: Locator, byX: number): Promise<void> {
  const box = await from.boundingBox();
  if (!box) throw new Error('nothing to touch');
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', points: { x: number; y: number }[]) =>
    touch.send('Input.dispatchTouchEvent', { type, touchPoints: points });
  await send('touchStart', [{ x, y }]);
  for (let step = 1; step <= 8; step += 1) await send('touchMove', [{ x: x + (byX * step) / 8, y }]);
  await send('touchEnd', []);
}

async function smallTargets(): Promise<string[]> {
  return bo.page.evaluate((min) => {
    const found: string[] = [];
    for (const element of document.querySelectorAll<HTMLElement>('button, a[href], input:not([type=file], [hidden]), textarea, select')) {
      const { width, height } = element.getBoundingClientRect();
      const shown = width > 1 && height > 1 && getComputedStyle(element).visibility === 'visible';
      // Words in a line of text are as high as the line.
      const inText = element.closest('.body, .byline, .margin, .quote') !== null || element.matches('.skip, .quote, .name');
      if (shown && !inText && (height < min - 1 || width < min - 1)) found.push(`${element.outerHTML.slice(0, 90)} ${width}x${height}`);
    }
    return found;
  }, TARGET_PX_MIN);
}

describe('a phone', () => {
  it('has_targets_for_fingers_in_the_room_and_in_the_list', async () => {
    expect(await smallTargets()).toEqual([]);
    await bo.page.getByRole('button', { name: 'Open the list of rooms' }).click();
    await bo.page.getByRole('link', { name: /Harbour/ }).waitFor();
    expect(await smallTargets()).toEqual([]);
    await bo.page.getByText('Swipe me.', { exact: true }).waitFor();
    await bo.page.getByRole('link', { name: /Harbour/ }).tap();
    await bo.composer.waitFor();
  });

  it('does_not_zoom_in_on_the_text_field_nor_raise_the_keyboard_by_itself', async () => {
    expect(await bo.composer.evaluate((field) => Number.parseFloat(getComputedStyle(field).fontSize))).toBeGreaterThanOrEqual(16);
    expect(await bo.page.evaluate(() => document.activeElement?.id)).not.toBe('composer');
  });

  it('starts_a_line_by_enter_and_sends_by_the_button', async () => {
    await bo.composer.tap();
    await bo.page.keyboard.type('first');
    await bo.page.keyboard.press('Enter');
    await bo.page.keyboard.type('second');
    await expect.poll(() => bo.composer.inputValue()).toBe('first\nsecond');
    await bo.page.getByRole('button', { name: 'Send' }).tap();
    await astrid.message('second').waitFor();
  });

  it('answers_by_a_swipe', async () => {
    await drag(bo.message('Swipe me').locator('.content'), -120);
    await bo.page.getByText('Replying to Astrid Holm').waitFor();
    await bo.page.getByRole('button', { name: 'Cancel' }).tap();
    await bo.page.getByText('Replying to').waitFor({ state: 'detached' });
    expect(bo.errors).toEqual([]);
  });

  it('scrolls_code_that_is_wider_than_the_screen_and_answers_nothing', async () => {
    await astrid.say(`\`\`\`\n${'let tide = high_water(table); '.repeat(8)}\n\`\`\``);
    const code = bo.message('let tide').locator('pre');
    await code.waitFor();
    await drag(code, -120);
    await expect.poll(() => bo.message('let tide').evaluate((row) => Math.max(...[...row.querySelectorAll('*')].map((part) => part.scrollLeft)))).toBeGreaterThan(40);
    expect(await bo.page.getByText('Replying to').count()).toBe(0);
  });
});
