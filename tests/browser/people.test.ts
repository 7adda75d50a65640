//! People: who reacted, who is there, who somebody is; and what happens to those who have to go.

import { beforeAll, describe, expect, it } from 'vitest';

import { delayListUntilAccepted } from './support/late_list';
import { PASSWORD, Person } from './support/person';
import { astrid, bo, browser, meetIn, server, withAstridAndBo } from './support/scene';

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
  await astrid.say('Who is here?');
  await bo.message('Who is here').waitFor();
});

describe('a reaction', () => {
  it('says_who_gave_it', async () => {
    await bo.act('Who is here', 'React');
    await bo.page.getByRole('dialog', { name: 'Emoji' }).getByRole('button', { name: '🎉' }).click();
    const reaction = astrid.message('Who is here').getByRole('button', { name: /🎉, \d/ });
    await reaction.click();
    await reaction.hover();
    await astrid.page.getByRole('tooltip').filter({ hasText: 'Bo Lind and you' }).waitFor();
  });
});

describe('a name', () => {
  it('opens_who_that_is_and_leads_to_writing_to_them', async () => {
    await bo.message('Who is here').getByRole('button', { name: 'Astrid Holm', exact: true }).click();
    const card = bo.page.getByRole('dialog', { name: 'Profile of Astrid Holm' });
    await card.getByText('@astrid').waitFor();
    await card.getByText('Online · Owner').waitFor();
    await card.getByRole('button', { name: 'Write to Astrid Holm' }).click();
    await bo.page.getByRole('heading', { name: 'Astrid Holm', level: 1 }).waitFor();
  });

  it('shows_at_once_who_comes_and_goes', async () => {
    const status = bo.page.locator('header').getByText(/^(Online|Offline)$/);
    await expect.poll(() => status.textContent()).toBe('Online');
    await astrid.context.setOffline(true);
    await astrid.page.goto('about:blank').catch(() => undefined);
    await expect.poll(() => status.textContent()).toBe('Offline');
    await astrid.context.setOffline(false);
    await astrid.page.goto(server.url);
    await expect.poll(() => status.textContent()).toBe('Online');
    await bo.open('Harbour');
  });
});

describe('somebody who has to go', () => {
  it('is_asked_about_told_of_and_brought_back', async () => {
    await astrid.open('Harbour');
    await astrid.page.getByRole('button', { name: 'Members' }).click();
    await astrid.page.getByRole('button', { name: 'Actions for Bo Lind' }).click();
    await astrid.page.getByRole('button', { name: 'Ban', exact: true }).click();
    await astrid.page.getByText('Ban Bo Lind from Harbour?').waitFor();
    await astrid.page.keyboard.press('Escape');
    expect(await bo.page.getByRole('link', { name: 'Harbour' }).count()).toBe(1);
    await astrid.page.getByRole('button', { name: 'Ban', exact: true }).click();
    await astrid.page.getByRole('dialog').getByRole('button', { name: 'Ban', exact: true }).click();
    // The way back stays for as long as the pointer is on it.
    await astrid.page.locator('[data-toast]').hover();
    await bo.page.getByText('You were banned from Harbour.').waitFor();
    await astrid.page.getByText('Astrid Holm banned Bo Lind').waitFor();
    await astrid.page.locator('[data-toast]').getByRole('button', { name: 'Undo' }).click();
    await bo.page.getByRole('link', { name: 'Harbour' }).waitFor();
    await astrid.page.getByText('Bo Lind joined').waitFor();
  });

  it('is_brought_back_once_there_is_a_connection_again', async () => {
    const { page, context } = astrid;
    await page.getByRole('button', { name: 'Ban', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Ban', exact: true }).click();
    const undo = page.locator('[data-toast]').getByRole('button', { name: 'Undo' });
    await page.locator('[data-toast]').hover();
    await bo.page.getByRole('link', { name: 'Harbour' }).waitFor({ state: 'detached' });
    await context.setOffline(true);
    await page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    await undo.click();
    await page.getByText('You are not connected').waitFor();
    await undo.waitFor();
    await context.setOffline(false);
    await astrid.isOnline();
    await undo.click();
    await bo.page.getByRole('link', { name: 'Harbour' }).waitFor();
    await undo.waitFor({ state: 'detached' });
  });

  it('is_brought_back_after_being_removed_too', async () => {
    await astrid.page.getByRole('button', { name: 'Remove from room', exact: true }).click();
    await astrid.page.getByRole('dialog').getByRole('button', { name: 'Remove from room', exact: true }).click();
    await astrid.page.locator('[data-toast]').hover();
    await bo.page.getByText('You were removed from Harbour.').waitFor();
    await bo.page.getByRole('link', { name: 'Harbour' }).waitFor({ state: 'detached' });
    await astrid.page.locator('[data-toast]').getByRole('button', { name: 'Undo' }).click();
    await bo.page.getByRole('link', { name: 'Harbour' }).waitFor();
  });
});

describe('an invitation', () => {
  it('is_accepted_by_signing_in_on_its_page', async () => {
    const link = await astrid.invite();
    const cleo = await Person.arrive(browser, 'cleo');
    await cleo.signUp(server.url);
    await cleo.page.getByRole('button', { name: /^Account:/ }).click();
    await cleo.page.getByRole('button', { name: 'Sign out' }).click();
    await cleo.page.goto(link);
    await cleo.page.getByRole('button', { name: 'Sign in' }).click();
    await cleo.page.getByLabel('User name').fill('cleo');
    await cleo.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await cleo.page.getByRole('button', { name: 'Sign in' }).click();
    await cleo.page.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    await cleo.context.close();
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});

describe('a room that one has just joined', () => {
  it('stays_though_an_older_list_of_rooms_comes_after_it', async () => {
    const link = await astrid.invite();
    const dana = await Person.arrive(browser, 'dana');
    await delayListUntilAccepted(dana);
    await dana.joinBy(link, 'Dana Roth');
    await dana.say('Here to stay');
    await astrid.message('Here to stay').waitFor();
    await dana.page.getByRole('link', { name: 'Harbour' }).waitFor();
    expect(dana.errors).toEqual([]);
    await dana.context.close();
  });
});

describe('the members of a room', () => {
  it('stand_by_role_and_by_who_is_there', async () => {
    const panel = astrid.page.getByRole('complementary');
    await astrid.open('Harbour');
    if (!(await panel.isVisible())) await astrid.page.getByRole('button', { name: 'Members' }).click();
    await bo.open('Harbour');
    await panel.getByRole('group', { name: 'Owners 1' }).getByText('@astrid').waitFor();
    await panel.getByRole('group', { name: /^Online/ }).getByText('@bo').waitFor();
    await bo.page.goto('about:blank');
    await panel.getByRole('group', { name: /^Offline/ }).getByText('@bo').waitFor();
    expect(await panel.getByRole('heading', { level: 3 }).allTextContents()).not.toContain('Moderators 0');
    await bo.page.goto(server.url);
    await panel.getByRole('group', { name: /^Online/ }).getByText('@bo').waitFor();
  });
});

describe('the members of a large room', () => {
  it('are_found_by_any_word_of_their_names', async () => {
    await astrid.open('Harbour');
    const invite = new URL(await astrid.invite()).pathname.split('/').pop();
    // Enough to be searched; by hand it would take all day.
    for (let number = 0; number < 10; number += 1) {
      const account = { name: `guest${number}`, display_name: `Guest ${number === 7 ? 'Müller' : 'Nobody'}`, password: PASSWORD, invite };
      const made = await astrid.page.request.post(`${server.url}/api/v1/accounts`, { data: account });
      expect(made.status()).toBe(201);
    }
    const panel = astrid.page.getByRole('complementary');
    if (!(await panel.isVisible())) await astrid.page.getByRole('button', { name: 'Members' }).click();
    await panel.getByLabel('Find a member').fill('mul');
    await panel.getByText('@guest7').waitFor();
    await panel.getByText('@guest6').waitFor({ state: 'detached' });
    await panel.getByRole('status').getByText('1 member').waitFor({ state: 'attached' });
    await panel.getByLabel('Find a member').fill('zzz');
    await panel.getByText('Nobody found.').waitFor();
    await panel.getByLabel('Find a member').fill('');
    await panel.getByText('@guest6').waitFor();
    expect(astrid.errors).toEqual([]);
  });
});
