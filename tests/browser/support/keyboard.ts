//! Going through a page by keyboard alone, as people do who cannot point: and never for ever.

import type { Page } from 'playwright-core';

/** More than any view has stops. */
const PRESSES_MAX = 60;

/** Presses a key until the element of this name has the focus. */
export async function tabTo(page: Page, name: string, key = 'Tab'): Promise<void> {
  for (let press = 0; press < PRESSES_MAX; press += 1) {
    const current = await page.evaluate(() => {
      const element = document.activeElement;
      const label = element?.id ? document.querySelector(`label[for="${element.id}"]`)?.textContent : undefined;
      return element?.getAttribute('aria-label') ?? label ?? element?.textContent?.trim() ?? '';
    });
    if (current === name) return;
    await page.keyboard.press(key);
  }
  throw new Error(`the keyboard never reached “${name}”`);
}

/** Presses a key until an element of this tag has the focus. */
export async function focusOn(page: Page, tag: string, key: string): Promise<void> {
  for (let press = 0; press < PRESSES_MAX; press += 1) {
    if ((await page.evaluate(() => document.activeElement?.tagName)) === tag) return;
    await page.keyboard.press(key);
  }
  throw new Error(`the keyboard never reached a ${tag}`);
}
