//! A session that ends: for all tabs of its browser and for the server, at once, and for nobody else.

import type { Page } from 'playwright-core';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { PASSWORD } from './support/person';
import { bo, meetIn, server, withAstridAndBo } from './support/scene';

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
});

/** Another tab of Bo's. */
async function anotherTab(prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const page = await bo.context.newPage();
  await prepare?.(page);
  await page.goto(server.url);
  await page.locator('[data-connection="online"]').waitFor({ state: 'attached' });
  await page.locator('#composer').waitFor();
  return page;
}

async function signOut(): Promise<void> {
  await bo.page.getByRole('button', { name: /^Account:/ }).click();
  const dialog = bo.page.getByRole('dialog', { name: 'Account' });
  await dialog.getByRole('button', { name: 'Sign out' }).first().click();
  await bo.page.getByText('Welcome back').waitFor();
}

async function token(): Promise<string> {
  return bo.page.evaluate(() => (JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { token: string }).token);
}

async function statusOf(session: string): Promise<number> {
  const { status } = await fetch(`${server.url}/api/v1/limits`, { headers: { authorization: `Bearer ${session}` } });
  return status;
}

describe('signing out', () => {
  beforeEach(async () => {
    await bo.context.setOffline(false);
    await bo.page.goto(server.url);
    const userName = bo.page.getByLabel('User name');
    await userName.or(bo.composer).first().waitFor();
    if (await userName.isVisible()) await bo.signIn(server.url, 'bo', PASSWORD);
    await bo.isOnline();
  });

  it('reaches_the_server_though_the_page_is_left_at_once', async () => {
    const session = await token();
    expect(await statusOf(session)).toBe(200);
    await bo.page.getByRole('button', { name: /^Account:/ }).click();
    await bo.page.getByRole('dialog', { name: 'Account' }).waitFor();
    // As fast as a page can be left: in the same turn.
    await bo.page.evaluate(() => {
      [...document.querySelectorAll<HTMLElement>('dialog button')].find((button) => button.textContent.trim() === 'Sign out')?.click();
      location.href = 'about:blank';
    });
    await bo.page.waitForURL('about:blank');
    await expect.poll(() => statusOf(session)).toBe(401);
  });

  it('ends_the_other_tabs_though_there_is_no_network', async () => {
    const other = await anotherTab();
    await bo.context.setOffline(true);
    for (const page of [bo.page, other]) await page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    await signOut();
    await other.getByText('You were signed out').waitFor();
    await other.close();
  });

  it('leaves_who_has_signed_in_meanwhile_signed_in_when_a_tab_hears_late_of_it', async () => {
    let hear = () => {};
    const late = new Promise<void>((resolve) => (hear = resolve));
    const other = await anotherTab(async (page) => {
      // As a tab that the browser had put aside: it is told nothing, neither by the storage nor by the server.
      await page.addInitScript(() => window.addEventListener('storage', (event) => event.stopImmediatePropagation()));
      await page.routeWebSocket(/\/connection\/websocket/, (socket) => {
        socket.connectToServer().onClose((code, reason) => void late.then(() => socket.close({ code: code ?? 1000, reason: reason ?? '' })));
      });
    });
    await signOut();
    await bo.signIn(server.url, 'bo', PASSWORD);
    await bo.composer.waitFor();
    expect(await other.locator('#composer').count()).toBe(1);
    hear();
    await other.getByText('You were signed out').waitFor();
    await other.close();
    await bo.page.reload();
    await bo.composer.waitFor();
  });
});
