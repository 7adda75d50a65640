//! How things end: a room is put away and opened again, or deleted for good; somebody deletes the account.

import { beforeAll, describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { PASSWORD, Person } from './support/person';
import { astrid, bo, browser, meetIn, server, withAstridAndBo } from './support/scene';

withAstridAndBo({ astrid: CHECKED });
beforeAll(async () => {
  await meetIn('Regatta');
  await astrid.say('It is over.');
  await bo.message('It is over').waitFor();
});

async function settings(person: Person) {
  await person.page.getByRole('button', { name: 'Room settings' }).click();
  const dialog = person.page.getByRole('dialog', { name: 'Room settings' });
  await dialog.waitFor();
  return dialog;
}

describe('an archived room', () => {
  it('is_put_away_at_once_for_everybody_and_can_still_be_read', async () => {
    const dialog = await settings(astrid);
    expect(await violations(astrid.page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Archive room' }).click();
    await astrid.page.getByText('Regatta is archived.').waitFor();
    for (const person of [astrid, bo]) {
      await person.page.getByText('This room is archived: it can be read, and nobody can write in it.').waitFor();
      expect(await person.composer.count()).toBe(0);
      await person.message('It is over').waitFor();
      await person.page.getByRole('button', { name: 'Archived', exact: true }).waitFor();
    }
    // Nothing is offered that would be refused.
    await bo.message('It is over').hover();
    await bo.message('It is over').getByRole('button', { name: 'More' }).click();
    await bo.page.getByRole('menuitem', { name: 'Forward' }).waitFor();
    expect(await bo.page.getByRole('menuitem', { name: 'Reply', exact: true }).count()).toBe(0);
    expect(await bo.page.getByRole('button', { name: 'Reply', exact: true }).count()).toBe(0);
    await bo.page.keyboard.press('Escape');
    expect(await violations(astrid.page)).toEqual([]);
  });

  it('is_found_again_under_what_is_archived', async () => {
    await bo.page.goto(server.url);
    const fold = bo.page.getByRole('button', { name: 'Archived', exact: true });
    await fold.waitFor();
    if ((await fold.getAttribute('aria-expanded')) === 'false') await fold.click();
    await bo.page.getByRole('link', { name: /Regatta/ }).click();
    await bo.message('It is over').waitFor();
  });

  it('is_opened_again_by_undo_and_takes_messages', async () => {
    await astrid.page.locator('[data-toast]').getByRole('button', { name: 'Undo' }).click();
    await astrid.composer.waitFor();
    await bo.composer.waitFor();
    await bo.say('Not at all!');
    await astrid.message('Not at all').waitFor();
  });
});

describe('an account that is deleted', () => {
  it('asks_for_the_password_and_is_out', async () => {
    const chidi = await Person.arrive(browser, 'chidi');
    await chidi.joinBy(await astrid.invite(), 'Chidi Obi');
    await chidi.say('My last words');
    await bo.message('My last words').getByText('Chidi Obi').first().waitFor();
    await chidi.composer.fill('Half a sentence');
    const user = await chidi.page.evaluate(() => (JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { user: { id: string } }).user.id);
    await chidi.page.getByRole('button', { name: /^Account:/ }).click();
    const dialog = chidi.page.getByRole('dialog', { name: 'Account' });
    await dialog.getByRole('button', { name: 'Delete account' }).click();
    await dialog.locator('#end-password').fill('not the password');
    await dialog.getByRole('button', { name: 'Delete for good' }).click();
    await dialog.getByText('The password is wrong.').waitFor();
    await dialog.locator('#end-password').fill(PASSWORD);
    await dialog.getByRole('button', { name: 'Delete for good' }).click();
    await chidi.page.getByText('Your account was deleted.').waitFor();
    await chidi.page.getByRole('button', { name: 'Sign in', exact: true }).first().waitFor();
    expect(await chidi.page.getByText(/signed out/i).count()).toBe(0);
    // Nor is anything left of it at the browser.
    expect(await chidi.page.evaluate((id) => Object.keys(localStorage).filter((key) => key.includes(id)), user)).toEqual([]);
    await chidi.context.close();
  });

  it('leaves_its_words_without_its_name', async () => {
    await bo.message('My last words').getByText('Deleted account').first().waitFor();
    await bo.page.reload();
    await bo.message('My last words').getByText('Deleted account').first().waitFor();
    expect(await bo.page.getByText('Chidi Obi').count()).toBe(0);
    await bo.message('My last words').getByRole('button', { name: 'Deleted account' }).first().click();
    const card = bo.page.getByRole('dialog', { name: /^Profile of/ });
    await card.getByText('Deleted account', { exact: true }).waitFor();
    await expect.poll(() => card.getByRole('button').count()).toBe(0);
    await bo.page.keyboard.press('Escape');
  });
});

describe('a room that is deleted', () => {
  it('asks_for_its_name_and_is_gone_for_everybody', async () => {
    const dialog = await settings(astrid);
    await dialog.getByRole('button', { name: 'Delete room' }).click();
    const sure = dialog.getByRole('button', { name: 'Delete for good' });
    expect(await sure.isDisabled()).toBe(true);
    await dialog.getByLabel('Type the name of the room').fill('Regatta');
    await bo.createRoom('Quay');
    await bo.open('Regatta');
    await settings(bo);
    await astrid.page.keyboard.press('Enter');
    for (const person of [astrid, bo]) {
      await person.page.getByText('Regatta was deleted.').waitFor();
      await person.page.getByRole('link', { name: /Regatta/ }).waitFor({ state: 'detached' });
    }
  });

  it('takes_the_dialog_that_was_open_on_it_and_leaves_the_keys_to_the_page', async () => {
    expect(await bo.page.getByRole('dialog').count()).toBe(0);
    await bo.page.getByRole('heading', { name: 'Quay', level: 1 }).waitFor();
    await bo.composer.click();
    await bo.page.keyboard.type('still heard');
    await expect.poll(() => bo.composer.inputValue(), { timeout: 10_000 }).toBe('still heard');
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
