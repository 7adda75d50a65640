//! The directory of rooms: who finds a room without an invitation, who comes in, and who says so.

import { beforeAll, describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { call, openRoomOf } from './support/call';
import { tabTo } from './support/keyboard';
import { Person } from './support/person';
import { astrid, bo, browser, server, withAstridAndBo } from './support/scene';

type Access = 'Open' | 'By invitation' | 'Hidden';

withAstridAndBo({ bo: CHECKED });
beforeAll(async () => {
  await astrid.signUp(server.url, 'Astrid Holm');
  await make('Küche', 'Rezepte und Café', 'Open');
  await astrid.say('What was said before');
  await astrid.allSent();
  await make('Board', 'Minutes of the harbour', 'By invitation');
  await make('Surprise', 'For Bo', 'Hidden');
  await bo.signUp(server.url, 'Bo Lind');
});

async function make(name: string, topic: string, access: Access): Promise<void> {
  const { page } = astrid;
  await page.getByRole('button', { name: 'Create room' }).first().click();
  await page.getByLabel('Room name').fill(name);
  await page.getByLabel('Topic').fill(topic);
  await page.getByRole('radio', { name: access }).check();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name, level: 1 }).waitFor();
}

/** Changes who comes into the room that Astrid has open; waits until it is kept. */
async function change(access: Access): Promise<void> {
  const { page } = astrid;
  await page.getByRole('button', { name: 'Room settings' }).click();
  const dialog = page.getByRole('dialog', { name: 'Room settings' });
  await dialog.getByRole('radio', { name: access }).check();
  await dialog.getByText('Saved', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
}

/** Opens the directory; waits until it shows what there is. */
async function directory({ page }: Person) {
  await page.getByRole('button', { name: 'Find a room' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Find a room' });
  await dialog.getByRole('list').waitFor();
  return dialog;
}

describe('whoever is in no room', () => {
  it('finds_the_rooms_that_are_listed_and_no_others', async () => {
    await bo.page.getByRole('heading', { name: 'No rooms yet' }).waitFor();
    const dialog = await directory(bo);
    await expect.poll(() => dialog.getByRole('listitem').count()).toBe(2);
    await dialog.getByRole('listitem').filter({ hasText: 'Board' }).getByText('By invitation').waitFor();
    expect(await dialog.getByRole('button', { name: 'Join: Board' }).count()).toBe(0);
    expect(await dialog.getByText('Surprise').count()).toBe(0);
    expect(await violations(bo.page)).toEqual([]);
  });

  it('finds_one_by_a_part_of_its_name_or_topic_without_accents', async () => {
    const dialog = bo.page.getByRole('dialog', { name: 'Find a room' });
    for (const [typed, found] of [['kuch', 'Küche'], ['harbour', 'Board']] as const) {
      await dialog.getByLabel('Part of the name or topic').fill(typed);
      await expect.poll(() => dialog.getByRole('listitem').allTextContents()).toEqual([expect.stringContaining(found)]);
    }
    await dialog.getByLabel('Part of the name or topic').fill('surprise');
    await dialog.getByText('Nothing matches.').waitFor();
    await dialog.getByLabel('Part of the name or topic').fill('');
    await expect.poll(() => dialog.getByRole('listitem').count()).toBe(2);
    await bo.page.keyboard.press('Escape');
  });

  it('joins_an_open_room_by_keyboard_alone_and_reads_what_was_said_before', async () => {
    await bo.page.keyboard.press('Control+k');
    await bo.page.keyboard.type('find a room');
    await bo.page.getByRole('option', { name: 'Find a room' }).waitFor();
    await bo.page.keyboard.press('Enter');
    await bo.page.getByRole('button', { name: 'Join: Küche' }).waitFor();
    await tabTo(bo.page, 'Join: Küche');
    await bo.page.keyboard.press('Enter');
    await bo.page.getByRole('heading', { name: 'Küche', level: 1 }).waitFor();
    await bo.message('What was said before').waitFor();
    await bo.say('Found you!');
    await astrid.open('Küche');
    await astrid.message('Found you!').waitFor();
    await astrid.page.getByText('Bo Lind joined').waitFor();
    const dialog = await directory(bo);
    await dialog.getByRole('button', { name: 'Open: Küche' }).click();
    await dialog.waitFor({ state: 'detached' });
  });
});

describe('an owner', () => {
  it('says_in_the_settings_who_finds_the_room_and_comes_in', async () => {
    const { page } = astrid;
    await page.getByRole('button', { name: 'Room settings' }).click();
    await expect.poll(() => page.getByRole('radio', { name: 'Open' }).isChecked()).toBe(true);
    await page.keyboard.press('Escape');
    await change('Hidden');
    await page.getByRole('button', { name: 'Room settings' }).click();
    await expect.poll(() => page.getByRole('radio', { name: 'Hidden' }).isChecked()).toBe(true);
    await page.keyboard.press('Escape');
    const chidi = await Person.arrive(browser, 'chidi');
    await chidi.signUp(server.url, 'Chidi Obi');
    const dialog = await directory(chidi);
    await expect.poll(() => dialog.getByRole('listitem').allTextContents()).toEqual([expect.stringContaining('Board')]);
    await chidi.context.close();
  });

  it('closes_the_door_to_somebody_who_still_sees_it_open', async () => {
    await change('Open');
    const dana = await Person.arrive(browser, 'dana');
    await dana.signUp(server.url, 'Dana Roth');
    const dialog = await directory(dana);
    await dialog.getByRole('button', { name: 'Join: Küche' }).waitFor();
    await change('By invitation');
    await dialog.getByRole('button', { name: 'Join: Küche' }).click();
    await dialog.getByText(/ask one for an invite/).waitFor();
    await dana.context.close();
  });
});

describe('a member', () => {
  it('reads_who_comes_in_and_cannot_change_it', async () => {
    await bo.page.getByRole('button', { name: 'Room settings' }).click();
    const dialog = bo.page.getByRole('dialog', { name: 'Room settings' });
    await dialog.getByText(/By invitation\. Everybody here can find it/).waitFor();
    expect(await dialog.getByRole('radio', { name: 'Hidden' }).count()).toBe(0);
    expect(await violations(bo.page)).toEqual([]);
    await bo.page.keyboard.press('Escape');
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});

describe('a directory of several pages', () => {
  it('has_a_room_once_that_is_renamed_between_them', async () => {
    const erin = await Person.arrive(browser, 'erin');
    await erin.page.routeWebSocket(/\/connection\/websocket/, (socket) => {
      const line = socket.connectToServer();
      socket.onMessage((message) => line.send(String(message).replace(/("method":"rooms.browse","data":\{)(\}?)/g, (_all, head: string, end: string) =>
        `${head}"limit":1${end === '' ? ',' : end}`)));
      line.onMessage((message) => socket.send(message));
    });
    await erin.signUp(server.url, 'Erin Vale');
    const dialog = await directory(erin);
    await expect.poll(() => dialog.getByRole('listitem').allTextContents()).toEqual([expect.stringContaining('Board')]);
    await astrid.open('Board');
    await call(astrid.page, [['room.update', { room: openRoomOf(astrid.page), name: 'Zebra', topic: 'Minutes of the harbour' }]]);
    const more = dialog.getByRole('button', { name: 'Show more' });
    while ((await more.count()) > 0) {
      const before = await dialog.innerText();
      await more.click();
      await expect.poll(() => dialog.innerText()).not.toBe(before);
    }
    await dialog.getByText('Zebra').waitFor();
    expect(await dialog.getByText('Board', { exact: true }).count()).toBe(0);
    expect(erin.errors).toEqual([]);
    await erin.context.close();
  });
});
