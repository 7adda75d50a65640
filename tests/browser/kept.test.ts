//! Messages that are kept in sight: pinned for everybody in a room, or saved for oneself.

import { beforeAll, describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { tabTo } from './support/keyboard';
import { Person } from './support/person';
import { astrid, bo, browser, meetIn, server, withAstridAndBo } from './support/scene';

withAstridAndBo({ astrid: CHECKED });
beforeAll(async () => {
  await meetIn('Harbour');
  for (const text of ['The ferry leaves at nine.', 'Bring a **warm** coat.', 'And tea.']) await astrid.say(text);
  await astrid.allSent();
  await bo.message('And tea').waitFor();
});

/** Puts the focus on a message, as the arrow keys would. */
const select = (person: Person, text: string) => person.message(text).focus();

describe('a pinned message', () => {
  it('is_pinned_by_keyboard_and_seen_by_everybody_at_once', async () => {
    await select(astrid, 'The ferry');
    await astrid.page.keyboard.press('p');
    await bo.message('The ferry').getByRole('button', { name: 'Pinned' }).waitFor();
    await bo.page.getByRole('button', { name: 'Astrid Holm pinned a message' }).waitFor();
    await bo.page.keyboard.press('Alt+p');
    const panel = bo.page.getByRole('complementary', { name: 'Pinned messages' });
    await panel.getByText('The ferry leaves at nine.').waitFor();
    await panel.getByText(/^Pinned by Astrid Holm/).waitFor();
    // Live while it is open: the last one first, as it reads now.
    await astrid.act('warm coat', 'Pin for everybody');
    await panel.getByText('Bring a warm coat.').waitFor();
    expect(await panel.getByRole('listitem').count()).toBe(2);
    expect(await panel.getByRole('listitem').first().textContent()).toContain('warm coat');
    // Bo only reads here.
    expect(await panel.getByRole('button', { name: /^Unpin/ }).count()).toBe(0);
  });

  it('is_gone_to_and_unpinned_by_keyboard_alone_and_without_a_finding_of_axe', async () => {
    const { page } = astrid;
    await page.keyboard.press('Alt+p');
    const panel = page.getByRole('complementary', { name: 'Pinned messages' });
    await panel.getByText('The ferry leaves at nine.').waitFor();
    expect(await violations(page)).toEqual([]);
    await panel.getByRole('heading').focus();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toContain('The ferry');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/room\/[^/]+\/1$/);
    await tabTo(page, 'Unpin: Astrid Holm');
    await page.keyboard.press('Enter');
    const ferry = bo.message('The ferry').getByRole('button', { name: 'Pinned' });
    await ferry.waitFor({ state: 'detached' });
    await panel.getByText('The ferry leaves at nine.').waitFor({ state: 'detached' });
    await panel.getByRole('heading').focus();
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
  });
});

describe('a saved message', () => {
  it('is_on_the_list_of_all_devices_of_one_person_and_of_nobody_else', async () => {
    const tablet = await Person.arrive(browser, 'bo', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    await tablet.signIn(server.url);
    await tablet.page.getByRole('link', { name: 'Saved messages' }).click();
    await tablet.page.getByText('Nothing saved').waitFor();
    await select(bo, 'The ferry');
    await bo.page.keyboard.press('s');
    await bo.message('The ferry').getByText('Saved for later').waitFor();
    await bo.act('And tea', 'Save for later');
    const list = tablet.page.getByRole('main').getByRole('list', { name: 'Saved messages' });
    await list.getByText('The ferry leaves at nine.').waitFor();
    await list.getByText('And tea.').waitFor();
    expect(await list.getByRole('listitem').first().textContent()).toContain('# Harbour');
    // It leads to the message, on a phone too.
    await list.getByText('The ferry leaves at nine.').click();
    await tablet.message('The ferry').getByText('Saved for later').waitFor();
    // The mark of a pinned one leads to all of them, which take the whole screen, and from there back.
    await tablet.message('warm coat').getByRole('button', { name: 'Pinned' }).tap();
    await tablet.page.getByRole('complementary', { name: 'Pinned messages' }).getByText('Bring a warm coat.').tap();
    await tablet.page.waitForURL(/\/room\/[^/]+\/2$/);
    await tablet.message('warm coat').waitFor();
    await tablet.context.close();
    expect(await astrid.message('The ferry').getByText('Saved for later').count()).toBe(0);
  });

  it('is_found_by_the_palette_and_taken_off_by_keyboard_alone', async () => {
    const { page } = bo;
    await page.keyboard.press('Control+k');
    await page.keyboard.type('saved');
    await page.getByRole('option', { name: 'Saved messages' }).waitFor();
    await page.keyboard.press('Enter');
    const list = page.getByRole('main').getByRole('list', { name: 'Saved messages' });
    await list.getByText('And tea.').waitFor();
    await tabTo(page, 'Remove from saved: Astrid Holm');
    await page.keyboard.press('Enter');
    await list.getByText('And tea.').waitFor({ state: 'detached' });
    // The next one has the focus, and Enter goes there.
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toContain('The ferry');
    await page.keyboard.press('Enter');
    await bo.message('The ferry').waitFor();
    await bo.message('And tea').getByText('Saved for later').waitFor({ state: 'detached' });
  });

  it('is_listed_without_a_finding_of_axe', async () => {
    await astrid.act('The ferry', 'Save for later');
    await astrid.page.getByRole('link', { name: 'Saved messages' }).click();
    const list = astrid.page.getByRole('main').getByRole('list', { name: 'Saved messages' });
    await list.getByText('The ferry').waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await astrid.open('Harbour');
  });
});

describe('a deleted message', () => {
  it('is_neither_pinned_nor_saved_any_more', async () => {
    await bo.act('warm coat', 'Save for later');
    await bo.message('warm coat').getByText('Saved for later').waitFor();
    // From the mark to the list.
    await bo.message('warm coat').getByRole('button', { name: 'Pinned' }).click();
    const panel = bo.page.getByRole('complementary', { name: 'Pinned messages' });
    await panel.getByText('Bring a warm coat.').waitFor();
    await select(astrid, 'warm coat');
    await astrid.page.keyboard.press('Delete');
    await panel.getByText('Nothing is pinned here yet').waitFor();
    await bo.page.getByRole('link', { name: 'Saved messages' }).click();
    const list = bo.page.getByRole('main').getByRole('list', { name: 'Saved messages' });
    await list.getByText('The ferry').waitFor();
    expect(await list.getByRole('listitem').count()).toBe(1);
    expect(astrid.errors).toEqual([]);
    expect(bo.errors).toEqual([]);
  });
});
