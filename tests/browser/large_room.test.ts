//! A room of thousands of people: the list of them is whole, whoever comes meanwhile, and neither it nor the field where one
//! writes becomes slow. Figures are printed.

import { beforeAll, describe, expect, it } from 'vitest';

import { fillWithMembers, type LargeRoom } from './support/large_room';
import { PASSWORD } from './support/person';
import { astrid, meetIn, server, withAstridAndBo } from './support/scene';

const MEMBERS = 5_000;
const PAGE = 200;
/** On a busy machine. */
const SHOWN_MS_MAX = 10_000;
const KEY_MS_MAX = 1_000;
const REFUSED_MS = 8_000;

withAstridAndBo();
let room: LargeRoom;
let invite: string;
beforeAll(async () => {
  room = await fillWithMembers(astrid, MEMBERS);
  invite = new URL(await meetIn('Harbour')).pathname.split('/').pop() ?? '';
  await astrid.page.getByRole('button', { name: /^Members/ }).click();
});

const panel = () => astrid.page.getByRole('complementary');
const more = () => panel().getByRole('button', { name: 'More members' });
const shown = async () => (await panel().textContent() ?? '').match(/@person\d+/g) ?? [];
const first = (count: number) => Array.from({ length: count }, (_, index) => `@person${String(index).padStart(5, '0')}`);

/** The list, whoever of it is online. */
async function listed(count: number): Promise<void> {
  await expect.poll(async () => (await shown()).length).toBe(count);
  expect((await shown()).sort()).toEqual(first(count));
}

describe(`a list of ${MEMBERS} members`, () => {
  it('gets_each_page_once_though_it_is_asked_for_twice', async () => {
    await listed(PAGE);
    await more().dblclick();
    await listed(2 * PAGE);
  });

  it('stays_as_long_as_it_is_and_whole_though_somebody_comes_while_a_page_is_on_its_way', async () => {
    const before = room.asked();
    room.hold();
    await more().click();
    const account = { name: 'newcomer', display_name: 'New Comer', password: PASSWORD, invite };
    expect((await astrid.page.request.post(`${server.url}/api/v1/accounts`, { data: account })).status()).toBe(201);
    await expect.poll(() => room.asked()).toBeGreaterThan(before);
    room.release();
    await listed(3 * PAGE);
  });

  it('comes_to_its_end_soon', async () => {
    const began = Date.now();
    for (let there = 3 * PAGE; there < MEMBERS; there += PAGE) {
      await more().click();
      await panel().locator('li').nth(there + PAGE - 1).waitFor({ state: 'attached' });
    }
    console.info(`${MEMBERS} members after ${Date.now() - began} ms`);
    await listed(MEMBERS);
  });

  it('leaves_the_field_where_one_writes_as_fast_as_it_was', async () => {
    await astrid.page.evaluate(() => {
      const took: number[] = [];
      document.querySelector('#composer')?.addEventListener('keydown', (event) => {
        requestAnimationFrame(() => setTimeout(() => took.push(performance.now() - event.timeStamp)));
      });
      Object.assign(window, { took });
    });
    await astrid.composer.focus();
    for (let key = 0; key < 20; key += 1) await astrid.page.keyboard.press('x', { delay: 20 });
    const took = await astrid.page.evaluate(() => (window as unknown as { took: number[] }).took.sort((a, b) => a - b));
    const slow = took[Math.floor(took.length * 0.95)] ?? Number.NaN;
    const began = Date.now();
    await astrid.composer.fill('@person0499');
    await astrid.page.getByRole('option', { name: /person04990/ }).waitFor();
    console.info(`key to paint beside ${MEMBERS} members: ${Math.round(slow)} ms (p95); their names offered after ${Date.now() - began} ms`);
    expect(slow).toBeLessThan(KEY_MS_MAX);
    expect(Date.now() - began).toBeLessThan(SHOWN_MS_MAX);
    expect(astrid.errors).toEqual([]);
  });
});

describe('a server that is too busy to say who is in a room', () => {
  it('is_asked_again_with_pauses_until_it_says_so', async () => {
    room.refuse(true);
    await astrid.page.reload();
    await astrid.isOnline();
    const before = room.asked();
    await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
    expect(room.asked() - before).toBeGreaterThan(1);
    expect(room.asked() - before).toBeLessThan(10);
    room.refuse(false);
    if ((await panel().count()) === 0) await astrid.page.getByRole('button', { name: /^Members/ }).click();
    await listed(PAGE);
  });
});
