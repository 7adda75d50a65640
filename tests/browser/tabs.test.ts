//! Several tabs of one browser: what one of them leaves unsent another sends, and what one has settled is settled in all.

import type { Dialog, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
  await astrid.say('Hello.');
  await astrid.allSent();
});

/** Another tab of Astrid's, on the same room. */
async function anotherTab(prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const page = await astrid.context.newPage();
  await prepare?.(page);
  await page.goto(astrid.page.url());
  await page.locator('[data-connection="online"]').waitFor({ state: 'attached' });
  await page.locator('#composer').waitFor();
  return page;
}

async function offline(...pages: Page[]): Promise<void> {
  await astrid.context.setOffline(true);
  for (const page of pages) await page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
}

async function say(page: Page, text: string): Promise<void> {
  await page.locator('#composer').fill(text);
  await page.locator('#composer').press('Control+Enter');
}

const pending = (page: Page, text: string) => page.locator('[data-pending]').filter({ hasText: text });

describe('a message that was not sent yet', () => {
  it('is_sent_once_by_the_tab_that_stays_when_its_own_is_closed', async () => {
    const other = await anotherTab();
    await offline(astrid.page, other);
    await say(other, 'From a closed tab.');
    await pending(other, 'From a closed tab.').waitFor();
    await other.goto('about:blank');
    await pending(astrid.page, 'From a closed tab.').waitFor();
    await astrid.say('From the tab that stays.');
    await astrid.context.setOffline(false);
    await bo.message('From the tab that stays').waitFor();
    await astrid.allSent();
    expect((await bo.everything()).map(({ text }) => text)).toEqual(['Hello.', 'From a closed tab.', 'From the tab that stays.']);
    await other.close();
  });

  it('is_gone_from_all_tabs_once_one_has_discarded_it', async () => {
    await astrid.page.evaluate(() => {
      const { user } = JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { user: { id: string } };
      const room = location.pathname.split('/')[2];
      const entry = { key: 'refused', room, body: 'Refused once.', created_at: 1, state: 'failed', attempts: 1, error: 'no' };
      localStorage.setItem(`folkmoot.unsent.${user.id}.refused`, JSON.stringify(entry));
    });
    await astrid.page.reload();
    const other = await anotherTab();
    await pending(astrid.page, 'Refused once.').waitFor();
    await pending(other, 'Refused once.').getByRole('button', { name: 'Discard' }).click();
    await pending(astrid.page, 'Refused once.').waitFor({ state: 'detached' });
    await other.close();
  });

  it('is_asked_for_before_its_tab_closes_where_the_browser_does_not_keep_it', async () => {
    const full = async (page: Page) => {
      await page.addInitScript(() => {
        const { setItem } = Storage.prototype;
        Storage.prototype.setItem = function (key, value) {
          if (key.startsWith('folkmoot.unsent.')) throw new DOMException('full', 'QuotaExceededError');
          setItem.call(this, key, value);
        };
      });
    };
    const other = await anotherTab(full);
    await offline(other);
    await say(other, 'Kept nowhere else.');
    await pending(other, 'Kept nowhere else.').waitFor();
    const asked = new Promise<Dialog>((resolve) => other.once('dialog', resolve));
    await other.close({ runBeforeUnload: true });
    const dialog = await asked;
    expect(dialog.type()).toBe('beforeunload');
    await dialog.dismiss();
    await astrid.context.setOffline(false);
    await bo.message('Kept nowhere else').waitFor();
    await pending(other, 'Kept nowhere else.').waitFor({ state: 'detached' });
    await other.close();
  });

  it('causes_no_error_in_any_page', () => {
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
