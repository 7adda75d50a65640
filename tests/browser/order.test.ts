//! Order: the list of rooms holds still, what is unread is found and cleared by keyboard, one sees where one looked away,
//! and what was done by mistake can be undone.

import { beforeAll, describe, expect, it } from 'vitest';

import { delaySearch } from './support/late_search';
import type { Person } from './support/person';
import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Zebra');
  for (const room of ['Anchor', 'Mast']) {
    await astrid.createRoom(room);
    await addBo();
  }
  await bo.page.getByRole('link', { name: 'Mast' }).waitFor();
});

async function addBo(): Promise<void> {
  await astrid.page.getByRole('button', { name: 'Invite people' }).click();
  await astrid.page.getByLabel('Add somebody with an account').fill('lind');
  await astrid.page.getByRole('dialog').getByRole('button', { name: /Bo Lind/ }).click();
  await astrid.page.getByRole('dialog').getByText('added', { exact: true }).waitFor();
  await astrid.page.keyboard.press('Escape');
}

const roomsOf = (person: Person) => person.page.locator('nav a .title').allTextContents();

/** Faster than any fingers: nothing can be drawn, and no answer can come, between the keys. */
function pressAtOnce(person: Person, keys: readonly string[]): Promise<void> {
  return person.page.evaluate((pressed) => {
    for (const press of pressed) {
      const key = press.replace('Control+', '');
      const event = new KeyboardEvent('keydown', { key, ctrlKey: key !== press, bubbles: true, cancelable: true });
      (document.activeElement ?? document.body).dispatchEvent(event);
    }
  }, keys);
}

const caughtUp = (person: Person) => person.page.getByRole('main').getByText('All caught up').waitFor();

/** As if another window lay in front; a headless browser gives every page the focus. */
function lookAway(person: Person, away: boolean): Promise<void> {
  return person.page.evaluate((gone) => {
    Object.defineProperty(document, 'hasFocus', { configurable: true, value: () => !gone });
    window.dispatchEvent(new Event(gone ? 'blur' : 'focus'));
  }, away);
}

describe('the list of rooms', () => {
  it('stands_by_name_and_does_not_move_when_something_is_said', async () => {
    expect(await roomsOf(bo)).toEqual(['Anchor', 'Mast', 'Zebra']);
    await astrid.open('Zebra');
    await astrid.say('Nothing moves.');
    await bo.page.getByRole('link', { name: 'Zebra' }).locator('.title').waitFor();
    await astrid.open('Mast');
    await astrid.say('Nor now.');
    await bo.page.getByRole('link', { name: /Mast.*1 unread/ }).waitFor();
    expect(await roomsOf(bo)).toEqual(['Anchor', 'Mast', 'Zebra']);
  });

  it('keeps_what_is_pinned_on_top_through_a_reload', async () => {
    await bo.page.getByRole('link', { name: 'Zebra' }).click({ button: 'right' });
    await bo.page.getByRole('menuitem', { name: 'Pin', exact: true }).click();
    await expect.poll(() => roomsOf(bo)).toEqual(['Zebra', 'Anchor', 'Mast']);
    await bo.page.reload();
    await bo.composer.waitFor();
    await expect.poll(() => roomsOf(bo)).toEqual(['Zebra', 'Anchor', 'Mast']);
  });

  it('takes_sections_made_by_hand', async () => {
    await bo.page.getByRole('button', { name: 'Menu of Anchor' }).focus();
    await bo.page.keyboard.press('Enter');
    await bo.page.getByRole('menuitem', { name: 'New section' }).click();
    await bo.page.getByLabel('Name of the section').fill('Later');
    await bo.page.keyboard.press('Enter');
    await bo.page.getByRole('button', { name: 'Later', exact: true }).waitFor();
    await expect.poll(() => roomsOf(bo)).toEqual(['Zebra', 'Anchor', 'Mast']);
  });
});

describe('what is unread', () => {
  it('is_cleared_in_the_inbox_by_keyboard_alone', async () => {
    await bo.open('Zebra');
    await astrid.open('Anchor');
    await astrid.say('For @bo alone.');
    await bo.page.getByRole('link', { name: /Anchor.*1 mention/ }).waitFor();
    await bo.page.keyboard.press('Alt+i');
    await bo.page.getByRole('heading', { name: 'Inbox' }).waitFor();
    await bo.page.getByText('For @bo alone.').last().waitFor();
    await expect.poll(() => bo.page.evaluate(() => document.activeElement?.hasAttribute('data-row'))).toBe(true);
    // Mentions come first.
    expect(await bo.page.evaluate(() => document.activeElement?.textContent)).toContain('Anchor');
    // As fast as fingers can, without looking what the first did.
    await bo.page.keyboard.press('e');
    await bo.page.keyboard.press('e');
    await caughtUp(bo);
    await bo.page.getByRole('status').and(bo.page.locator('.only-heard')).getByText('All caught up').waitFor({ state: 'attached' });
    await bo.page.getByRole('link', { name: 'Anchor', exact: true }).waitFor();
  });

  it('loses_no_key_though_rows_go_under_the_focus', async () => {
    await bo.open('Zebra');
    const rooms = ['Anchor', 'Mast'];
    for (const room of rooms) {
      await astrid.open(room);
      await astrid.say(`More in ${room}.`);
    }
    for (const room of rooms) await bo.page.getByRole('link', { name: new RegExp(`${room}.*1 unread`) }).waitFor();
    await bo.page.keyboard.press('Alt+i');
    await bo.page.getByText('More in Anchor.').last().waitFor();
    // Clicking beside the rows takes the focus away from them, and the keys still work.
    await bo.page.getByRole('heading', { name: 'Inbox' }).click();
    await bo.page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await pressAtOnce(bo, ['j', 'e', 'e']);
    await caughtUp(bo);
    // The server knows it too: a listing after a reload brings nothing back.
    await bo.page.reload();
    await bo.isOnline();
    for (const room of rooms) await bo.page.getByRole('link', { name: room, exact: true }).waitFor();
    await caughtUp(bo);
  });

  it('stands_behind_a_line_where_one_looked_away', async () => {
    await bo.open('Zebra');
    await bo.message('Nothing moves').waitFor();
    await lookAway(bo, true);
    await astrid.open('Zebra');
    await astrid.say('While you were away.');
    await bo.message('While you were away').waitFor();
    await bo.message('While you were away').getByText('New', { exact: true }).waitFor();
    await lookAway(bo, false);
    await bo.message('While you were away').getByText('New', { exact: true }).waitFor();
  });
});

describe('a deleted message', () => {
  it('comes_back_when_it_was_a_mistake', async () => {
    await astrid.say('Keep me.');
    await astrid.message('Keep me').waitFor();
    await astrid.act('Keep me', 'Delete');
    await astrid.page.getByRole('button', { name: 'Undo' }).click();
    await astrid.message('Keep me').waitFor();
    await bo.message('Keep me').waitFor();
  });
});

describe('the palette', () => {
  it('gets_what_is_typed_before_it_is_there', async () => {
    await bo.open('Zebra');
    await bo.composer.fill('');
    // All keys within one task: the dialog cannot be there before the last of them.
    await pressAtOnce(bo, ['Control+k', 'a', 'n', 'c', 'x', 'Backspace', 'h', 'Enter']);
    await bo.page.getByRole('heading', { name: 'Anchor', level: 1 }).waitFor();
    await bo.open('Zebra');
    await expect.poll(() => bo.composer.inputValue()).toBe('');
  });

  it('finds_rooms_people_actions_and_messages_without_accents', async () => {
    const { keyboard } = astrid.page;
    await astrid.createRoom('Küche');
    await astrid.say('The windlass squeaks.');
    await astrid.allSent();
    const option = (name: RegExp) => astrid.page.getByRole('option', { name });
    const finds = async (typed: string, found: RegExp) => {
      await keyboard.press('Control+k');
      await keyboard.type(typed);
      const isThere = await option(found).first().waitFor({ timeout: 10_000 }).then(() => true, () => false);
      await keyboard.press('Escape');
      await astrid.page.getByRole('dialog').waitFor({ state: 'detached' });
      return isThere;
    };
    for (const [typed, found] of [['kuch', /Küche/], ['lind', /Bo Lind/], ['create ro', /Create room/], ['windl', /The windlass squeaks/]] as const) {
      // What was said a moment ago is found once the index has it.
      await expect.poll(() => finds(typed, found)).toBe(true);
    }
  });

  it('keeps_what_was_found_when_the_answer_to_less_comes_late', async () => {
    const late = await delaySearch(astrid, 'wind');
    await astrid.page.reload();
    await astrid.page.getByRole('heading', { name: 'Küche', level: 1 }).waitFor();
    await astrid.page.keyboard.press('Control+k');
    await astrid.page.keyboard.type('wind');
    await late.isHeld;
    await astrid.page.keyboard.type('lass');
    const hit = astrid.page.getByRole('option', { name: /The windlass squeaks/ });
    await hit.waitFor();
    await late.refuse();
    expect(await hit.count()).toBe(1);
    await astrid.page.keyboard.press('Escape');
  });

  it('names_the_keys_of_actions_that_have_some', async () => {
    await astrid.page.keyboard.press('Control+k');
    await astrid.page.keyboard.type('inbox');
    const inbox = astrid.page.getByRole('option', { name: 'Inbox', exact: true });
    await inbox.waitFor();
    expect(await inbox.locator('kbd').allTextContents()).toEqual(['Alt', 'I']);
    expect(await inbox.getAttribute('aria-keyshortcuts')).toBe('Alt+I');
    await astrid.page.keyboard.press('Escape');
  });

  it('does_not_stay_over_the_page_that_one_goes_back_to', async () => {
    await astrid.open('Mast');
    await astrid.open('Anchor');
    await astrid.page.keyboard.press('Control+k');
    await astrid.page.getByRole('dialog').waitFor();
    await astrid.page.goBack();
    await astrid.page.getByRole('heading', { name: 'Mast', level: 1 }).waitFor();
    await astrid.page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('offers_where_one_was_last_first', async () => {
    await astrid.open('Mast');
    await astrid.open('Anchor');
    await astrid.page.keyboard.press('Control+k');
    await expect.poll(() => astrid.page.getByRole('option').first().textContent()).toContain('Mast');
    await astrid.page.keyboard.press('Enter');
    await astrid.page.getByRole('heading', { name: 'Mast', level: 1 }).waitFor();
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
