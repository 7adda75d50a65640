// A person in a browser: watches bots, plays by keyboard, and plays on after the server was killed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, play, SCREENSHOT, serve } from './support.js';

const STATUS = '#figures';
let server;
let browser;

before(async () => {
  server = await serve('--chaos', '3s');
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function open(viewport) {
  const page = await browser.newPage({ viewport });
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  page.on('console', (message) => {
    // A connection that fails while the server is down is reported by the browser itself.
    if (message.type() === 'error' && !/WebSocket|net::ERR_/.test(message.text())) page.errors.push(message.text());
  });
  await page.goto(server.url);
  await page.getByRole('heading', { name: 'Treasure hunt' }).waitFor();
  return page;
}

async function join(page, name) {
  await page.getByLabel('Your name').fill(name);
  await page.getByRole('button', { name: 'Play' }).click();
  await page.locator('#hud').waitFor({ state: 'visible' });
  await page.getByText('Walk with the arrow keys').waitFor();
}

/** Digs somewhere new: a hole tells that the server has done it. */
async function dig(page) {
  const told = page.getByText(/Nothing here but a hole|You found a clue/);
  for (const key of ['ArrowRight', 'ArrowDown', 'ArrowLeft', 'ArrowUp', 'ArrowRight', 'ArrowUp']) {
    await page.keyboard.press(' ');
    if (await told.waitFor({ timeout: 2_000 }).then(() => true, () => false)) return;
    await page.keyboard.press(key);
    await page.waitForTimeout(150);
  }
  assert.fail('nothing could be dug');
}

test('the keyboard plays, and a killed server costs the player nothing', async () => {
  const page = await open({ width: 1280, height: 800 });
  await join(page, 'ann');
  await dig(page);
  await server.restart();
  await page.getByText('connection lost').waitFor({ timeout: 5_000 }).catch(() => {});
  await page.waitForFunction(() => document.getElementById('link').hidden, null, { timeout: 15_000 });
  await page.keyboard.press('ArrowRight');
  await dig(page);
  await page.keyboard.press('l');
  await page.getByText('You have left').waitFor();
  await page.getByRole('button', { name: 'Play' }).waitFor();
  assert.deepEqual(page.errors, []);
  await page.close();
});

test('a narrow screen plays by its buttons', async () => {
  const page = await open({ width: 390, height: 844 });
  await join(page, 'bea');
  await page.getByRole('button', { name: 'dig' }).click();
  await page.getByText(/hole|clue|Nothing/).first().waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 390, `the page is ${width} wide`);
  assert.deepEqual(page.errors, []);
  await page.close();
});

test('a watcher sees a thousand bots and who leads', async () => {
  // At this rate a server that was not optimised and a browser find room on two cores.
  const bots = play(server.address, '--players', '1000', '--players-per-socket', '10', '--seconds', '25', '--rate', '2');
  const page = await open({ width: 1440, height: 900 });
  await join(page, 'you');
  await page.locator('#board li b').nth(4).waitFor({ timeout: 30_000 });
  const players = page.locator(`${STATUS} div`, { hasText: /^players/ }).locator('dd');
  await page.waitForFunction((id) => Number(document.querySelector(`${id} dd`).textContent.replace(/\D/g, '')) > 1_000, STATUS);
  assert.match(await players.textContent(), /^1,0/);
  await page.keyboard.press('m');
  await page.locator('html[data-ground=complete]').waitFor({ timeout: 60_000, state: 'attached' });
  // The camera has arrived and some clues are on their way.
  await page.waitForTimeout(3_000);
  await page.screenshot({ path: SCREENSHOT });
  assert.equal(await bots, 0, 'the bots lost nothing');
  assert.deepEqual(page.errors, []);
  await page.close();
});
