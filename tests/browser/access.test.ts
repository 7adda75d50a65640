//! For everyone: no violation that axe-core can find on any view in either theme, the whole main road by keyboard alone,
//! and a phone's width without anything cut off.

import type { Locator } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { focusOn, tabTo } from './support/keyboard';
import { PASSWORD, Person } from './support/person';
import { astrid, bo, browser, meetIn, server, withAstridAndBo } from './support/scene';

let link: string;

withAstridAndBo({ astrid: CHECKED });
beforeAll(async () => {
  link = await meetIn('Harbour', 'Boats and tides');
  await bo.say('Hello @astrid, `code` and https://example.org');
  await bo.say('```rust\nfn main() { println!("ahoy"); }\n```');
  await astrid.message('ahoy').waitFor();
  await astrid.act('Hello', 'React');
  await astrid.page.getByRole('dialog', { name: 'Emoji' }).getByRole('button', { name: '👍' }).click();
  await astrid.act('Hello', 'Reply');
  await astrid.say('Ahoy yourself.');
  await astrid.allSent();
});

async function openedBy(button: string | RegExp): Promise<void> {
  await astrid.page.getByRole('button', { name: button }).first().click();
}

async function closed(): Promise<void> {
  await astrid.page.keyboard.press('Escape');
}

describe('axe-core finds nothing', () => {
  it('on_signing_in_and_creating_an_account', async () => {
    const guest = await Person.arrive(browser, 'guest', CHECKED);
    await guest.page.goto(server.url);
    await guest.page.getByLabel('User name').waitFor();
    expect(await violations(guest.page)).toEqual([]);
    await guest.page.goto(link);
    await guest.page.getByText('You are invited').waitFor();
    expect(await violations(guest.page)).toEqual([]);
    await guest.context.close();
  });

  it('on_an_invitation_for_someone_signed_in', async () => {
    await astrid.page.goto(link);
    await astrid.page.getByRole('button', { name: 'Join room' }).waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await openedBy('Cancel');
  });

  it('on_the_empty_page_and_in_a_room', async () => {
    expect(await violations(astrid.page)).toEqual([]);
    await astrid.open('Harbour');
    await astrid.message('Ahoy yourself').hover();
    expect(await violations(astrid.page)).toEqual([]);
  });

  it('with_the_menu_of_a_message_open', async () => {
    await astrid.message('Ahoy yourself').hover();
    await astrid.message('Ahoy yourself').getByRole('button', { name: 'More', exact: true }).click();
    await astrid.page.getByRole('menuitem', { name: 'Copy text' }).waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await closed();
  });

  it('while_completing_a_name_and_picking_an_emoji', async () => {
    await astrid.composer.pressSequentially('@b');
    await astrid.page.getByRole('option').first().waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await closed();
    await astrid.composer.fill('');
    await openedBy('Emoji');
    await astrid.page.getByLabel('Search emoji').waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await closed();
  });

  it.each(['Members', 'Search'])('in_the_panel_%s', async (name) => {
    await openedBy(name);
    await astrid.page.getByRole('complementary').waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await astrid.page.getByRole('complementary').getByRole('button', { name: 'Close' }).click();
  });

  it.each(['Create room', 'New direct message', /^Jump to/, 'Keyboard shortcuts', /^Account:/, 'Room settings', 'Invite people'])(
    'in_the_dialog_%s',
    async (name) => {
      await openedBy(name);
      await astrid.page.getByRole('dialog').waitFor();
      expect(await violations(astrid.page)).toEqual([]);
      await closed();
      await expect.poll(() => astrid.page.getByRole('dialog').count()).toBe(0);
    },
  );

  it('in_german_on_a_phone', async () => {
    const greta = await Person.arrive(browser, 'astrid', { ...CHECKED, locale: 'de-DE', viewport: { width: 390, height: 844 } });
    await greta.page.goto(server.url);
    await greta.page.getByLabel('Benutzername').fill('astrid');
    // A phone that was never here is offered an account first.
    await greta.page.getByRole('button', { name: 'Anmelden' }).click();
    await greta.page.getByLabel('Passwort', { exact: true }).fill(PASSWORD);
    await greta.page.getByRole('button', { name: 'Anmelden' }).click();
    await greta.page.getByRole('link', { name: /Harbour/ }).click();
    await greta.message('Ahoy yourself').waitFor();
    expect(await violations(greta.page)).toEqual([]);
    const overflow = await greta.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow).toBe(0);
    await greta.page.getByRole('button', { name: 'Liste der Räume öffnen' }).click();
    expect(await violations(greta.page)).toEqual([]);
    await greta.context.close();
  });
});

describe('the keyboard alone', () => {
  it('signs_up_makes_a_room_writes_answers_edits_reacts_and_deletes', async () => {
    const kim = await Person.arrive(browser, 'kim');
    const { page } = kim;
    const { keyboard } = page;
    await page.goto(server.url);
    await page.getByLabel('User name').waitFor();
    // Somebody who was never here makes an account, and the caret waits in its first field.
    await page.getByLabel('Display name').waitFor();
    await keyboard.type('kim');
    await keyboard.press('Tab');
    await keyboard.type('Kim Berg');
    await keyboard.press('Tab');
    await keyboard.type(PASSWORD);
    await keyboard.press('Enter');
    await page.getByRole('button', { name: /^Account:/ }).waitFor();

    await tabTo(page, 'Create room');
    await keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await tabTo(page, 'Room name');
    await keyboard.type('Attic');
    await keyboard.press('Enter');
    await kim.composer.waitFor();

    // The caret waits in the text field.
    await keyboard.type('First words');
    await keyboard.press('Enter');
    await kim.message('First words').waitFor();
    // Up from an empty field edits one's last message.
    await keyboard.press('ArrowUp');
    await page.getByLabel('Edit message').waitFor();
    await keyboard.type(', mended');
    await keyboard.press('Enter');
    await kim.message('First words, mended').waitFor();

    await keyboard.press('Shift+Tab');
    await focusOn(page, 'ARTICLE', 'Shift+Tab');
    await keyboard.press('r');
    await page.getByText('Replying to Kim Berg').waitFor();
    await keyboard.type('An answer');
    await keyboard.press('Enter');
    await kim.message('An answer').waitFor();

    await focusOn(page, 'ARTICLE', 'Shift+Tab');
    await keyboard.press('Home');
    await keyboard.press('ArrowDown');
    await keyboard.press('+');
    await page.getByLabel('Search emoji').waitFor();
    await keyboard.type('tada');
    await page.getByRole('button', { name: 'party popper' }).waitFor();
    await keyboard.press('Enter');
    await kim.message('An answer').getByRole('button', { name: /🎉, 1 person, including you/ }).waitFor();

    await focusOn(page, 'ARTICLE', 'Shift+Tab');
    await keyboard.press('Home');
    await keyboard.press('Delete');
    await kim.message('This message was deleted').getByRole('button', { name: 'Undo' }).waitFor();
    await kim.message('This message was deleted').getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached', timeout: 15_000 });
    await kim.message('This message was deleted').waitFor();

    await keyboard.press('Control+k');
    await keyboard.type('att');
    await page.getByRole('option', { name: /Attic/ }).waitFor();
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Attic', level: 1 }).waitFor();
    expect(kim.errors).toEqual([]);
    await kim.context.close();
  });

  it('comes_back_to_the_message_that_was_forwarded_or_deleted_by_its_menu', async () => {
    const { page } = astrid;
    await astrid.open('Harbour');
    await astrid.say('Where the focus comes back to');
    const row = astrid.message('Where the focus comes back to');
    await row.waitFor();
    const choose = async (item: string) => {
      await row.focus();
      await tabTo(page, 'More');
      await page.keyboard.press('Enter');
      await page.getByRole('menuitem', { name: item, exact: true }).focus();
      await page.keyboard.press('Enter');
    };
    const isBack = () => page.evaluate(() => document.activeElement?.matches('article[data-seq]') === true);
    await choose('Forward');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await expect.poll(isBack, { timeout: 5_000 }).toBe(true);
    await choose('Delete');
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    expect(await isBack()).toBe(true);
    await page.getByRole('button', { name: 'Undo' }).click();
  });

  it('enters_a_panel_that_is_opened_and_comes_back_to_the_text_field_when_it_is_closed', async () => {
    const { page, composer } = astrid;
    await astrid.open('Harbour');
    const hasFocus = (element: Locator) => expect.poll(() => element.evaluate((each) => each === document.activeElement)).toBe(true);
    for (const [key, id] of [['Alt+m', 'members-title'], ['Alt+p', 'pins-title']] as const) {
      for (const closing of ['Escape', key]) {
        await composer.focus();
        await page.keyboard.press(key);
        await hasFocus(page.locator(`#${id}`));
        await page.keyboard.press(closing);
        await page.locator(`#${id}`).waitFor({ state: 'detached' });
        await hasFocus(composer);
      }
    }
  });

  it('stays_in_the_text_field_of_a_room_that_is_opened_beside_a_panel', async () => {
    const { page, composer } = astrid;
    await astrid.createRoom('Quay');
    for (const [key, id] of [['Alt+m', 'members-title'], ['Alt+p', 'pins-title']] as const) {
      await page.keyboard.press(key);
      await page.locator(`#${id}:focus`).waitFor();
      await page.keyboard.press('Alt+ArrowDown');
      await page.locator(`#${id}:not(:focus)`).waitFor();
      await page.locator('#composer:focus').waitFor();
      await page.keyboard.type('to this room');
      expect(await composer.inputValue()).toBe('to this room');
      await composer.fill('');
      await page.keyboard.press(key);
      await page.locator(`#${id}`).waitFor({ state: 'detached' });
    }
    await astrid.open('Harbour');
  });

  it('always_shows_where_the_focus_is', async () => {
    await astrid.open('Harbour');
    for (let step = 0; step < 25; step += 1) {
      await astrid.page.keyboard.press('Tab');
      const visible = await astrid.page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return true;
        const shows = (each: Element | null): boolean => {
          if (!each) return false;
          const style = getComputedStyle(each);
          return (style.outlineStyle !== 'none' && style.outlineWidth !== '0px') || style.boxShadow !== 'none';
        };
        // A text field may show it on the box that it stands in.
          return shows(element) || shows(element.parentElement) || shows(element.parentElement?.parentElement ?? null);
      });
      expect(visible).toBe(true);
    }
  });
});
