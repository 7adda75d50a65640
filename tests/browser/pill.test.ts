//! The truth about the connection: one quiet pill that comes once, stays, moves nothing, and is the same on every page.

import { beforeAll, describe, expect, it, vi } from 'vitest';

import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';

/** Long enough for several attempts to fail. */
const OUTAGE_MS = 9_000;

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
  // Whoever has been here for a moment has all of the client.
  await bo.page.evaluate(() => navigator.serviceWorker.ready);
  await vi.waitUntil(() => bo.page.evaluate(keepsAll), { timeout: 30_000 });
});

/** Whether the page would come whole without its server. */
async function keepsAll(): Promise<boolean> {
  const cache = await caches.open('folkmoot-client');
  const all = (await (await fetch('/offline.json')).json()) as string[];
  const kept = await Promise.all(all.map((path) => cache.match(path)));
  return kept.every((file) => file !== undefined);
}

interface Watched {
  appeared: number;
  moved: number;
}

describe('an outage', () => {
  it('is_told_once_and_moves_nothing_however_many_attempts_it_takes', async () => {
    await astrid.page.evaluate(() => {
      const place = document.querySelector('[data-connection]');
      const watched = { appeared: 0, moved: 0 };
      const top = document.querySelector('#composer')?.getBoundingClientRect().top;
      const header = document.querySelector('h1')?.getBoundingClientRect().top;
      new MutationObserver((changes) => {
        for (const { addedNodes } of changes) {
          for (const node of addedNodes) if (node instanceof HTMLElement && node.matches('.pill')) watched.appeared += 1;
        }
        const same = document.querySelector('#composer')?.getBoundingClientRect().top === top && document.querySelector('h1')?.getBoundingClientRect().top === header;
        if (!same) watched.moved += 1;
      }).observe(place ?? document.body, { childList: true, subtree: true, characterData: true });
      Object.assign(window, { watched });
    });
    await server.kill();
    await astrid.page.getByText(/Connection lost/).waitFor();
    await astrid.say('written in the outage');
    await astrid.page.getByText('1 message waiting to be sent').waitFor();
    await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS));
    const { appeared, moved } = await astrid.page.evaluate(() => (window as unknown as { watched: Watched }).watched);
    expect({ appeared, moved }).toEqual({ appeared: 1, moved: 0 });
  });

  it('is_told_on_other_pages_too', async () => {
    await astrid.page.keyboard.press('Alt+i');
    await astrid.page.getByRole('heading', { name: 'Inbox' }).waitFor();
    expect(await astrid.page.getByText(/Connection lost/).count()).toBe(1);
  });

  it('leaves_the_client_usable_after_a_reload_dialogs_included', async () => {
    await bo.page.reload();
    await bo.page.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    // Chromium drops keys until the first paint after a reload.
    await bo.page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    await bo.page.keyboard.press('Control+k');
    await bo.page.getByRole('option', { name: /Harbour/ }).waitFor();
    await bo.page.keyboard.press('Escape');
  });

  it('ends_with_the_message_sent_and_the_pill_gone', async () => {
    await server.run();
    await astrid.isOnline();
    await astrid.page.locator('.pill').waitFor({ state: 'detached', timeout: 20_000 });
    await bo.message('written in the outage').waitFor({ timeout: 40_000 });
    await bo.page.keyboard.press('Escape');
  });
});

describe('a message', () => {
  it('costs_its_readers_little_more_than_its_text', async () => {
    const MESSAGES = 20;
    const session = await bo.context.newCDPSession(bo.page);
    let bytes = 0;
    session.on('Network.webSocketFrameReceived', ({ response }) => (bytes += response.payloadData.length));
    await session.send('Network.enable');
    await bo.open('Harbour');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    bytes = 0;
    await astrid.open('Harbour');
    for (let number = 0; number < MESSAGES; number += 1) await astrid.say(`cheap ${number}`);
    await bo.message(`cheap ${MESSAGES - 1}`).waitFor();
    console.info(`bytes received per message: ${Math.round(bytes / MESSAGES)} (bound 1,500)`);
    expect(bytes / MESSAGES).toBeLessThan(3_000);
  });
});
