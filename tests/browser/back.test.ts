//! Back on a phone closes what lies over the room, the top one first, and only then leads to the page before.

import type { CDPSession, Locator } from 'playwright-core';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';

withAstridAndBo({ bo: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } });
let room: string;
let touch: CDPSession;
beforeAll(async () => {
  await meetIn('Harbour');
  await astrid.say('Who brings the coffee, @bo?');
  await bo.message('the coffee').waitFor();
  room = new URL(bo.page.url()).pathname;
  touch = await bo.context.newCDPSession(bo.page);
});

const back = () => bo.page.evaluate(() => history.back());
const path = () => bo.page.evaluate(() => location.pathname);
const button = (name: string | RegExp) => bo.page.getByRole('button', { name });
const panel = (name: string | RegExp) => bo.page.getByRole('complementary', { name });
const MEMBERS = /member/;
const list = () => bo.page.getByRole('link', { name: /Harbour/ });

/** From the list of rooms into the room, as people come there: the list is the page before. */
beforeEach(async () => {
  await bo.page.goto(server.url);
  await list().tap();
  await bo.message('the coffee').waitFor();
});

/** Where something is, once it has held still for two frames: a room that was just opened still moves its rows. */
async function placeOf(on: Locator): Promise<{ x: number; y: number }> {
  return on.evaluate((element) => new Promise<{ x: number; y: number }>((resolve) => {
    const look = (before?: DOMRect): void => {
      const now = element.getBoundingClientRect();
      if (before?.top === now.top && before.left === now.left) resolve({ x: now.x + now.width / 2, y: now.y + now.height / 2 });
      else requestAnimationFrame(() => requestAnimationFrame(() => look(now)));
    };
    look();
  }));
}

/** A finger rests until the phone shakes, and is lifted. */
async function longPress(on: Locator): Promise<void> {
  // In place before the finger comes: the two are not said over one connection.
  const shaken = await bo.page.evaluateHandle(() => ({ promise: new Promise<void>((resolve) => {
    navigator.vibrate = () => (resolve(), true);
  }) }));
  await touch.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [await placeOf(on)] });
  await shaken.evaluate(({ promise }) => promise);
  await touch.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
}

/** Chooses from the sheet of the message. */
async function choose(action: string): Promise<void> {
  await longPress(bo.message('the coffee').locator('.body'));
  await bo.page.getByRole('menuitem', { name: action, exact: true }).tap();
}

async function isInRoom(): Promise<void> {
  await bo.composer.waitFor();
  expect(await path()).toBe(room);
}

async function onceMoreLeadsToTheList(): Promise<void> {
  await back();
  await list().waitFor();
  expect(await path()).toBe('/');
}

/** Everything that may lie over a room, with how it is opened. */
const LAYERS: readonly [name: string, open: () => Promise<void>, layer: () => Locator][] = [
  ['members', () => button(/^Members/).tap(), () => panel(MEMBERS)],
  ['search', () => button('Search').tap(), () => panel('Search')],
  ['thread', () => choose('Show thread'), () => panel('Thread')],
  ['settings', () => button('Room settings').tap(), () => bo.page.getByRole('dialog', { name: 'Room settings' })],
  ['invitations', () => button('Invite people').tap(), () => bo.page.getByRole('dialog', { name: /Invite people/ })],
  ['profile', () => bo.message('the coffee').getByRole('button', { name: 'Astrid Holm' }).first().tap(), () => bo.page.getByRole('dialog', { name: /Astrid Holm/ })],
  ['emoji', () => choose('React'), () => bo.page.getByRole('dialog', { name: 'Emoji' })],
  ['menu', () => longPress(bo.message('the coffee').locator('.body')), () => bo.page.getByRole('menu')],
];

describe('back on a phone', () => {
  it.each(LAYERS)('closes_%s_and_stays_in_the_room', async (_name, open, layer) => {
    await open();
    await layer().waitFor();
    await back();
    await layer().waitFor({ state: 'detached' });
    await isInRoom();
    await onceMoreLeadsToTheList();
  });

  // To the browser, which waits longer for a long press, a finger that is lifted at once has tapped: on what lay there, or
  // on what has come there since.
  it('has_no_tap_follow_the_press_that_opens_a_menu', async () => {
    await bo.page.evaluate(() => {
      const tapped: string[] = [];
      window.addEventListener('mousedown', ({ target }) => tapped.push(target instanceof Element ? target.textContent.trim() : ''), { capture: true });
      Object.assign(window, { tapped });
    });
    await choose('React');
    await bo.page.getByRole('dialog', { name: 'Emoji' }).waitFor();
    // Taps come in the order in which they were made, so the one that was meant is the last.
    expect(await bo.page.evaluate(() => (window as unknown as { tapped: string[] }).tapped)).toEqual(['React']);
    await back();
  });

  it('closes_the_top_one_of_several', async () => {
    await choose('Show thread');
    await panel('Thread').getByText('@bo', { exact: true }).tap();
    await bo.page.getByRole('dialog', { name: /Bo Lind/ }).waitFor();
    await back();
    await bo.page.getByRole('dialog', { name: /Bo Lind/ }).waitFor({ state: 'detached' });
    expect(await panel('Thread').isVisible()).toBe(true);
    await back();
    await panel('Thread').waitFor({ state: 'detached' });
    await isInRoom();
    await onceMoreLeadsToTheList();
  });

  it('steps_over_what_was_closed_by_its_button_or_by_escape', async () => {
    await button(/^Members/).tap();
    await panel(MEMBERS).getByRole('button', { name: 'Close' }).tap();
    await panel(MEMBERS).waitFor({ state: 'detached' });
    await button('Room settings').tap();
    await bo.page.getByRole('dialog').waitFor();
    await bo.page.keyboard.press('Escape');
    await bo.page.getByRole('dialog').waitFor({ state: 'detached' });
    await isInRoom();
    await onceMoreLeadsToTheList();
  });

  it('leads_from_a_message_that_a_thread_led_to_back_to_the_room', async () => {
    await choose('Show thread');
    await panel('Thread').getByRole('button', { name: /Go to the message by Astrid Holm/ }).tap();
    await bo.composer.waitFor();
    expect(await path()).toBe(`${room}/1`);
    await back();
    await expect.poll(path).toBe(room);
    await isInRoom();
    await onceMoreLeadsToTheList();
  });

  it('means_the_same_after_a_reload_and_after_going_forward', async () => {
    await button(/^Members/).tap();
    await panel(MEMBERS).waitFor();
    await back();
    await panel(MEMBERS).waitFor({ state: 'detached' });
    await bo.page.evaluate(() => history.forward());
    await isInRoom();
    await button('Search').tap();
    await panel('Search').waitFor();
    await bo.page.reload();
    await bo.message('the coffee').waitFor();
    await isInRoom();
    await onceMoreLeadsToTheList();
    await bo.page.evaluate(() => history.forward());
    await bo.message('the coffee').waitFor();
    await isInRoom();
  });

  it('leads_out_of_the_list_that_the_arrow_led_up_to', async () => {
    // What was there before the client: Back leads there once, and not into a room again.
    const before = await bo.page.evaluate(() => history.length);
    await button(/^Members/).tap();
    await panel(MEMBERS).getByRole('button', { name: 'Close' }).tap();
    await panel(MEMBERS).waitFor({ state: 'detached' });
    await button('Open the list of rooms').tap();
    await list().waitFor();
    expect(await path()).toBe('/');
    expect(await bo.page.evaluate(() => (history.state as { at: number }).at)).toBe(0);
    await list().tap();
    await isInRoom();
    // The steps of the room that was left are gone.
    expect(await bo.page.evaluate(() => history.length)).toBeLessThanOrEqual(before);
    await onceMoreLeadsToTheList();
  });

  it('leads_up_from_a_room_that_a_link_opened_and_not_back_into_it', async () => {
    await bo.page.goto('about:blank');
    await bo.page.goto(new URL(room, server.url).href);
    await isInRoom();
    await button('Search').tap();
    await panel('Search').getByRole('button', { name: 'Close' }).tap();
    await button('Open the list of rooms').tap();
    await list().waitFor();
    expect(await path()).toBe('/');
    await bo.page.goBack();
    expect(bo.page.url()).toBe('about:blank');
  });

  it('keeps_the_address_of_a_message_that_was_followed', async () => {
    await bo.page.goto(new URL(`${room}/1`, bo.page.url()).href);
    await bo.message('the coffee').waitFor();
    await button('Search').tap();
    await panel('Search').waitFor();
    await back();
    await panel('Search').waitFor({ state: 'detached' });
    expect(await path()).toBe(`${room}/1`);
    expect(bo.errors).toEqual([]);
  });
});
