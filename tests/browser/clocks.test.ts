//! A device whose clock is wrong by a day or by years, or is put right meanwhile: what people see and do goes by the
//! server's clock.

import { beforeAll, describe, expect, it } from 'vitest';

import { archivedRooms } from './support/archive';
import { call, openRoomOf } from './support/call';
import type { Person } from './support/person';
import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

const DAY_MS = 86_400_000;
const MUTE_MS = 3_600_000;
const WRONG: readonly [name: string, ms: number][] = [
  ['a_day_behind', -DAY_MS], ['a_day_ahead', DAY_MS], ['ten_years_behind', -3652 * DAY_MS], ['ten_years_ahead', 3652 * DAY_MS],
];

withAstridAndBo();
beforeAll(async () => {
  // Bo's clock is off by what his browser keeps under this name, and can be put back while the page is open.
  await bo.context.addInitScript(() => {
    const Right = Date;
    const off = () => Number(localStorage.getItem('test.clock') ?? '0');
    class Wrong extends Right {
      constructor(...given: []) {
        if (given.length === 0) super(Right.now() + off());
        else super(...given);
      }

      static override now(): number {
        return Right.now() + off();
      }
    }
    Object.assign(globalThis, { Date: Wrong });
  });
  await meetIn('Harbour');
});

async function setClock(ms: number): Promise<void> {
  await bo.page.evaluate((off) => localStorage.setItem('test.clock', String(off)), ms);
}

const userOf = (person: Person) =>
  person.page.evaluate(() => (JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { user: { id: string } }).user.id);

describe.each(WRONG)('a clock %s', (name, ms) => {
  beforeAll(async () => {
    await setClock(ms);
    await bo.page.reload();
    await bo.isOnline();
  });

  it('leaves_what_is_of_today_today', async () => {
    await astrid.say(`Now, ${name}.`);
    await bo.message(`Now, ${name}.`).waitFor();
    await expect.poll(() => bo.page.locator('.day').allTextContents()).toEqual(['Today']);
    const when = await bo.page.getByRole('link', { name: /Harbour/ }).locator('.when').innerText();
    expect(when.trim()).toMatch(/^\d\d:\d\d$/);
  });

  it('sends_keeps_the_session_and_draws_the_line_of_what_is_new', async () => {
    await bo.say(`Mine, ${name}.`);
    await astrid.message(`Mine, ${name}.`).waitFor();
    await bo.page.goto(new URL('/inbox', bo.page.url()).href);
    await astrid.say(`While away, ${name}.`);
    await bo.page.getByRole('link', { name: /Harbour.*1 unread/ }).first().click();
    await bo.message(`While away, ${name}.`).waitFor();
    await bo.page.locator('article', { hasText: `While away, ${name}.` }).getByText('New', { exact: true }).waitFor();
  });

  it('ends_a_mute_when_the_server_does', async () => {
    const until = Date.now() + 3_000;
    await call(astrid.page, [['room.mute', { room: openRoomOf(astrid.page), user: await userOf(bo), until }]]);
    await bo.composer.waitFor({ state: 'detached' });
    await bo.composer.waitFor();
    expect(Date.now()).toBeGreaterThanOrEqual(until);
    await bo.say(`Again, ${name}.`);
    await astrid.message(`Again, ${name}.`).waitFor();
  });
});

describe('a moderator whose clock is wrong', () => {
  beforeAll(async () => {
    await call(astrid.page, [['room.set_role', { room: openRoomOf(astrid.page), user: await userOf(bo), role: 'owner' }]]);
    await call(bo.page, [['room.set_role', { room: openRoomOf(bo.page), user: await userOf(astrid), role: 'member' }]]);
  });

  it.each(WRONG)('mutes_for_an_hour_%s', async (_when, ms) => {
    await setClock(ms);
    await bo.page.reload();
    await bo.isOnline();
    await bo.page.getByRole('button', { name: /^Members/ }).click();
    const panel = bo.page.getByRole('complementary').filter({ hasText: 'Astrid Holm' });
    await panel.getByRole('button', { name: 'Actions for Astrid Holm' }).click();
    await panel.getByRole('button', { name: 'Mute for an hour', exact: true }).click();
    await astrid.composer.waitFor({ state: 'detached' });
    const [reply] = await call(astrid.page, [['room.members', { room: openRoomOf(astrid.page) }]]);
    const { members } = reply as { members: { name: string; muted_until?: number }[] };
    const until = members.find(({ name: of }) => of === 'astrid')?.muted_until ?? 0;
    expect(Math.abs(until - Date.now() - MUTE_MS)).toBeLessThan(60_000);
    await panel.getByRole('button', { name: 'Unmute' }).click();
    await astrid.composer.waitFor();
  });
});

describe('a clock that is put right or wrong while the page is open', () => {
  it.each([DAY_MS, -DAY_MS])('changes_nothing_of_what_is_today_by_%i_ms', async (ms) => {
    await setClock(0);
    await bo.page.reload();
    await bo.isOnline();
    await setClock(ms);
    await astrid.say(`After ${ms}.`);
    await bo.message(`After ${ms}.`).waitFor();
    const when = bo.page.getByRole('link', { name: /Harbour/ }).locator('.when');
    await expect.poll(() => when.innerText()).toMatch(/^\s*\d\d:\d\d\s*$/);
    await expect.poll(() => bo.page.locator('.day').allTextContents()).toEqual(['Today']);
    await bo.isOnline();
  });
});

describe('a page that is open at midnight', () => {
  it('calls_what_was_said_before_it_yesterday', async () => {
    const page = await bo.context.newPage();
    await page.clock.install();
    await page.goto(bo.page.url());
    await page.locator('[data-connection="online"]').waitFor({ state: 'attached' });
    await expect.poll(() => page.locator('.day').allTextContents()).toEqual(['Today']);
    // Nobody tells the time meanwhile.
    await bo.context.setOffline(true);
    await page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    await page.clock.fastForward(DAY_MS);
    await expect.poll(() => page.locator('.day').allTextContents(), { timeout: 10_000 }).toEqual(['Yesterday']);
    await bo.context.setOffline(false);
    await page.close();
    await bo.isOnline();
  });
});

describe('a device that is taken to another time zone', () => {
  it('shows_the_time_of_where_it_is_though_the_page_stays_open', async () => {
    await setClock(0);
    await bo.page.reload();
    await bo.isOnline();
    await astrid.say('Where are you?');
    const time = bo.message('Where are you?').locator('time').first();
    const at = Date.parse((await time.getAttribute('datetime')) ?? '');
    const devtools = await bo.context.newCDPSession(bo.page);
    for (const timeZone of ['Pacific/Kiritimati', 'Pacific/Pago_Pago', 'Asia/Kathmandu']) {
      await devtools.send('Emulation.setTimezoneOverride', { timezoneId: timeZone });
      const there = new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' }).format(at);
      await expect.poll(async () => (await time.innerText()).trim(), { timeout: 15_000 }).toBe(there);
    }
    await devtools.send('Emulation.setTimezoneOverride', { timezoneId: '' });
    await devtools.detach();
  });
});

describe('a clock that is put back', () => {
  it('keeps_the_order_of_what_is_not_sent_yet', async () => {
    await setClock(0);
    await bo.page.reload();
    await bo.isOnline();
    await bo.page.evaluate(async () => navigator.serviceWorker.ready);
    await astrid.say('Before the tunnel.');
    await expect.poll(() => archivedRooms(bo)).toContainEqual(expect.stringContaining('Before the tunnel'));
    await bo.context.setOffline(true);
    await bo.say('first');
    await setClock(-DAY_MS);
    await bo.say('second');
    await setClock(-2 * DAY_MS);
    await bo.say('third');
    await bo.page.reload();
    await bo.page.locator('[data-pending]').nth(2).waitFor();
    await bo.context.setOffline(false);
    await bo.isOnline();
    await bo.allSent();
    await astrid.message('third').waitFor();
    expect((await astrid.everything()).slice(-3).map(({ text }) => text)).toEqual(['first', 'second', 'third']);
  });

  it('does_not_make_anybody_type_for_ever', async () => {
    await setClock(0);
    await astrid.composer.pressSequentially('Hm');
    await bo.page.getByText('Astrid Holm is typing').waitFor();
    await setClock(-DAY_MS);
    // Her notice ends by itself when her browser says nothing more.
    await astrid.context.setOffline(true);
    await bo.page.getByText('Astrid Holm is typing').waitFor({ state: 'detached', timeout: 30_000 });
    await astrid.context.setOffline(false);
    await astrid.isOnline();
    await bo.composer.pressSequentially('Well');
    await astrid.page.getByText('Bo Lind is typing').waitFor();
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
