//! One's own account: a new password, an invitation where only the invited may sign up, and people kept at a distance.

import { beforeAll, describe, expect, it } from 'vitest';

import { PASSWORD, Person } from './support/person';
import { astrid, bo, browser, meetIn, server, withAstridAndBo } from './support/scene';

const NEW_PASSWORD = 'staple battery horse';

let invitation: string;

withAstridAndBo();
beforeAll(async () => {
  invitation = await meetIn('Harbour');
});

async function openAccount(person: Person) {
  await person.page.getByRole('button', { name: /^Account:/ }).click();
  const dialog = person.page.getByRole('dialog', { name: 'Account' });
  await dialog.waitFor();
  return dialog;
}

describe('one’s own account', () => {
  it('opens_with_the_focus_where_a_key_too_many_does_no_harm', async () => {
    await astrid.page.getByRole('button', { name: /^Account:/ }).focus();
    await astrid.page.keyboard.press('Enter');
    const dialog = astrid.page.getByRole('dialog', { name: 'Account' });
    await dialog.waitFor();
    // Not on “Sign out”, which comes first.
    await expect.poll(() => dialog.getByLabel('Display name').evaluate((field) => field === document.activeElement)).toBe(true);
    await astrid.page.keyboard.press('Enter');
    await dialog.getByRole('button', { name: 'Saved' }).waitFor();
    await astrid.page.keyboard.press('Escape');
  });
});

describe('the list beside the settings', () => {
  it('says_where_one_was_led_though_the_last_part_cannot_come_to_the_top', async () => {
    const dialog = await openAccount(astrid);
    const security = dialog.getByRole('button', { name: 'Security' });
    await security.click();
    await dialog.getByRole('button', { name: 'Change password' }).waitFor();
    await expect.poll(() => security.getAttribute('aria-current')).toBe('true');
    // It stays so once the page has come to rest.
    await astrid.page.waitForTimeout(300);
    expect(await security.getAttribute('aria-current')).toBe('true');
    await dialog.getByRole('heading', { name: 'Security' }).hover();
    await astrid.page.mouse.wheel(0, -2_000);
    await expect.poll(() => dialog.getByRole('button', { name: 'Profile' }).getAttribute('aria-current')).toBe('true');
    await astrid.page.keyboard.press('Escape');
  });
});

describe('one’s own password', () => {
  it('is_changed_after_the_old_one_and_signs_the_other_devices_out', async () => {
    const other = await Person.arrive(browser, 'bo');
    await other.signIn(server.url, 'bo', PASSWORD);
    await other.composer.waitFor();

    const dialog = await openAccount(bo);
    await dialog.getByRole('button', { name: 'Change password' }).click();
    await dialog.getByLabel('Current password').fill('not this one');
    await dialog.getByLabel('New password').fill(NEW_PASSWORD);
    await dialog.getByRole('button', { name: 'Change password' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'The current password is wrong.' }).waitFor();
    await dialog.getByLabel('Current password').fill(PASSWORD);
    await dialog.getByRole('button', { name: 'Change password' }).click();
    await bo.page.getByText('Your password was changed.').waitFor();

    await other.page.getByText('You were signed out').waitFor();
    await other.signIn(server.url, 'bo', NEW_PASSWORD);
    await other.composer.waitFor();
    // This device goes on as it was.
    await bo.page.keyboard.press('Escape');
    await bo.say('Still here.');
    await astrid.message('Still here').waitFor();
    await other.context.close();
  });
});

describe('somebody kept at a distance', () => {
  const conversation = (person: Person, name: string) => person.page.getByRole('link', { name });

  it('is_off_the_list_until_they_write_again', async () => {
    await astrid.page.getByRole('button', { name: 'New direct message' }).click();
    await astrid.page.getByLabel('Find a person by user name').fill('bo');
    await astrid.page.getByRole('dialog').getByRole('button', { name: /Bo Lind/ }).click();
    await astrid.composer.waitFor();
    await astrid.say('Psst.');
    await conversation(bo, 'Astrid Holm').waitFor();

    await conversation(bo, 'Astrid Holm').click({ button: 'right' });
    await bo.page.getByRole('menuitem', { name: 'Hide conversation' }).click();
    await conversation(bo, 'Astrid Holm').waitFor({ state: 'detached' });
    await bo.page.getByRole('button', { name: 'Undo' }).click();
    await conversation(bo, 'Astrid Holm').waitFor();
    await conversation(bo, 'Astrid Holm').click({ button: 'right' });
    await bo.page.getByRole('menuitem', { name: 'Hide conversation' }).click();
    await conversation(bo, 'Astrid Holm').waitFor({ state: 'detached' });
    await astrid.say('Are you there?');
    await conversation(bo, 'Astrid Holm').waitFor();
  });

  it('cannot_write_alone_while_blocked_and_can_again_afterwards', async () => {
    await conversation(bo, 'Astrid Holm').click({ button: 'right' });
    await bo.page.getByRole('menuitem', { name: 'Block Astrid Holm' }).click();
    await bo.page.getByText('can no longer message you directly').waitFor();
    await astrid.say('Do you hear me?');
    await astrid.page.locator('[data-pending]').getByText('Not sent').waitFor();

    const dialog = await openAccount(bo);
    await dialog.getByRole('button', { name: 'Unblock' }).click();
    await dialog.getByRole('button', { name: 'Unblock' }).waitFor({ state: 'detached' });
    await bo.page.keyboard.press('Escape');
    await astrid.page.locator('[data-pending]').getByRole('button', { name: 'Try again' }).click();
    await conversation(bo, 'Astrid Holm').click();
    await bo.message('Do you hear me').waitFor();
    expect([...astrid.errors, ...bo.errors].filter((error) => !/401/.test(error))).toEqual([]);
  });
});

describe('coming in', () => {
  it('says_in_ones_own_language_what_was_wrong', async () => {
    const guest = await Person.arrive(browser, 'gast', { locale: 'de-DE' });
    const { page } = guest;
    await page.goto(server.url);
    const problem = page.getByRole('alert');
    await page.getByLabel('Benutzername').fill('astrid');
    await page.getByLabel('Passwort', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Konto anlegen' }).click();
    await problem.filter({ hasText: /^Dieser Benutzername .* schon vergeben/ }).waitFor();
    await page.getByLabel('Benutzername').fill('nämlich');
    await page.getByRole('button', { name: 'Konto anlegen' }).click();
    await problem.filter({ hasText: /2 bis 32 Zeichen/ }).waitFor();
    await page.getByRole('button', { name: 'Anmelden', exact: true }).click();
    await page.getByLabel('Benutzername').fill('astrid');
    await page.getByLabel('Passwort', { exact: true }).fill('not her password');
    await page.getByRole('button', { name: 'Anmelden', exact: true }).click();
    await problem.filter({ hasText: 'Dieser Name und dieses Passwort gehören nicht zusammen.' }).waitFor();
    await guest.context.close();
  });

  it('says_at_once_that_the_server_cannot_be_reached', async () => {
    const guest = await Person.arrive(browser, 'guest');
    await guest.page.route('**/api/**', (route) => route.abort());
    await guest.page.goto(server.url);
    await guest.page.getByRole('alert').filter({ hasText: 'The server cannot be reached.' }).waitFor();
    await guest.context.close();
  });
});

describe('a server for the invited', () => {
  it('asks_for_an_invitation_and_takes_its_link', async () => {
    const { host } = new URL(server.url);
    await server.kill();
    await server.run('--registration', 'invite');
    const guest = await Person.arrive(browser, 'cleo');
    await guest.page.goto(`http://${host}`);
    await guest.page.getByLabel('User name').fill('cleo');
    await guest.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await guest.page.getByLabel('Invitation').fill('nonsense');
    await guest.page.getByRole('button', { name: 'Create account' }).click();
    await guest.page.getByText('no such invite').waitFor();
    await guest.page.getByLabel('Invitation').fill(invitation);
    await guest.page.getByRole('button', { name: 'Create account' }).click();
    await guest.page.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    await guest.context.close();
  });

  it('needs_no_typing_from_who_follows_the_link', async () => {
    const guest = await Person.arrive(browser, 'dora');
    await guest.joinBy(invitation, 'Dora');
    await guest.page.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    await guest.context.close();
  });

  it('says_when_it_takes_nobody', async () => {
    await server.kill();
    await server.run('--registration', 'closed');
    const guest = await Person.arrive(browser, 'eve');
    await guest.page.goto(server.url);
    await guest.page.getByText('This server takes no new accounts.').waitFor();
    expect(await guest.page.getByRole('button', { name: 'Create account' }).count()).toBe(0);
    await guest.context.close();
  });
});
