//! Notifications as the browser shows them: which messages deserve one, what it says, where a click leads. Each one counts
//! only once the browser reports that it was shown.

import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';

interface Shown {
  title: string;
  body: string;
}

withAstridAndBo({ bo: { permissions: ['notifications'] } });
beforeAll(async () => {
  await bo.page.addInitScript(watchNotifications);
  await meetIn('Harbour');
  await bo.createRoom('Elsewhere');
});

/** Runs in the page: keeps every notification that the browser says it has shown, and every one that was asked for. */
function watchNotifications(): void {
  const watched = { asked: 0, shown: [] as Notification[] };
  class Watched extends Notification {
    constructor(title: string, options?: NotificationOptions) {
      super(title, options);
      watched.asked += 1;
      this.addEventListener('show', () => watched.shown.push(this));
    }
  }
  Object.assign(window, { Notification: Watched, watched });
}

/** Waits until so many were shown; returns the last one. */
async function shown(count: number): Promise<Shown | undefined> {
  await bo.page.waitForFunction((expected) => (window as unknown as { watched: { shown: unknown[] } }).watched.shown.length >= expected, count);
  return bo.page.evaluate(() => {
    const last = (window as unknown as { watched: { shown: Notification[] } }).watched.shown.at(-1);
    return last && { title: last.title, body: last.body };
  });
}

function asked(): Promise<number> {
  return bo.page.evaluate(() => (window as unknown as { watched: { asked: number } }).watched.asked);
}

/** Chooses what Bo wants to hear of the harbour, and goes back to the other room. */
async function choose(level: string): Promise<void> {
  await bo.open('Harbour');
  await bo.page.getByRole('button', { name: 'Room settings' }).click();
  await bo.page.getByLabel(level).check();
  await bo.page.keyboard.press('Escape');
  await bo.open('Elsewhere');
}

/** Sends into the harbour and waits until it has arrived at Bo's. */
async function arrives(text: string, badge: RegExp): Promise<void> {
  await astrid.say(text);
  await bo.page.getByRole('link', { name: badge }).waitFor();
}

describe('notifications', () => {
  it('show_the_room_and_who_says_what', async () => {
    await arrives('The crane is **booked**.', /Harbour.*1 unread/);
    expect(await shown(1)).toEqual({ title: 'Harbour', body: 'Astrid Holm: The crane is booked.' });
  });

  it('lead_to_the_message_when_clicked', async () => {
    await bo.page.evaluate(() => (window as unknown as { watched: { shown: Notification[] } }).watched.shown.at(-1)?.dispatchEvent(new Event('click')));
    await bo.page.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    await bo.message('The crane is booked').waitFor();
    expect(new URL(bo.page.url()).pathname).toMatch(/^\/room\/\w+\/1$/);
  });

  it('are_not_shown_for_the_room_one_looks_at', async () => {
    const before = await asked();
    await astrid.say('You see this one.');
    await bo.message('You see this one').waitFor();
    expect(await asked()).toBe(before);
  });

  it('are_only_mentions_where_that_was_chosen', async () => {
    await choose('Mentions only');
    const before = await asked();
    await arrives('For all of you.', /Harbour.*1 unread/);
    expect(await asked()).toBe(before);
    await arrives('For @bo.', /Harbour.*2 unread messages, 1 mention/);
    expect(await shown(before + 1)).toEqual({ title: 'Harbour', body: 'Astrid Holm: For @bo.' });
  });

  it('are_none_from_a_room_that_was_silenced', async () => {
    await choose('Nothing');
    const before = await asked();
    await arrives('Even @bo hears nothing.', /Harbour.*1 unread message, 1 mention/);
    expect(await asked()).toBe(before);
  });

  it('come_for_every_direct_message', async () => {
    const before = await asked();
    await astrid.page.getByRole('button', { name: 'New direct message' }).click();
    await astrid.page.getByLabel('Find a person').fill('bo');
    await astrid.page.getByRole('dialog').getByRole('button', { name: /Bo Lind/ }).click();
    await astrid.page.getByRole('heading', { name: 'Bo Lind', level: 1 }).waitFor();
    await astrid.say('Between us.');
    expect(await shown(before + 1)).toEqual({ title: 'Astrid Holm', body: 'Astrid Holm: Between us.' });
  });

  it('are_not_shown_for_what_one_looks_at_in_another_tab', async () => {
    await bo.open('Astrid Holm');
    const other = await bo.context.newPage();
    await other.addInitScript(watchNotifications);
    await other.goto(server.url);
    await other.getByRole('link', { name: 'Elsewhere' }).click();
    await other.getByRole('heading', { name: 'Elsewhere', level: 1 }).waitFor();
    await other.locator('[data-connection="online"]').waitFor({ state: 'attached' });
    await astrid.say('Seen in one tab.');
    await bo.message('Seen in one tab').waitFor();
    await other.getByRole('link', { name: 'Astrid Holm', exact: true }).waitFor();
    await bo.page.goto('about:blank');
    await astrid.say('Seen in none.');
    const first = await other.waitForFunction(() => (window as unknown as { watched: { shown: Notification[] } }).watched.shown[0]?.body);
    expect(await first.jsonValue()).toBe('Astrid Holm: Seen in none.');
    await other.close();
  });

  it('cause_no_error_in_either_page', () => {
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
