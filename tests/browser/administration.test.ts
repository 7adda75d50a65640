//! Setting a server up and administering it: by the printed link, once; what administrators see and do; that nobody else
//! does; by keyboard alone and in both languages.

import { describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { tabTo } from './support/keyboard';
import { PASSWORD, Person } from './support/person';
import { harbour } from './support/picture';
import { astrid, bo, browser, server, withAstridAndBo } from './support/scene';

withAstridAndBo({ astrid: CHECKED });

describe('a new server', () => {
  it('says_that_it_has_no_administrator_and_whoever_signs_up_is_none', async () => {
    await bo.page.goto(server.url);
    await bo.page.getByText('This server has no administrator yet').waitFor();
    await bo.signUp(server.url, 'Bo Lind');
    expect(await bo.page.getByRole('link', { name: 'Administration' }).count()).toBe(0);
  });

  it('is_set_up_by_the_printed_link_and_only_once', async () => {
    const link = await server.setupLink();
    await astrid.page.goto(link);
    await astrid.page.getByRole('heading', { name: 'Set up your server' }).waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await astrid.setUp(link, 'Astrid Holm');
    expect(new URL(astrid.page.url()).hash).toBe('');
    await astrid.page.getByRole('link', { name: 'Administration' }).waitFor();
    const late = await Person.arrive(browser, 'late');
    await late.page.goto(link);
    await late.page.getByLabel('User name').fill('late');
    await late.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await late.page.getByRole('button', { name: 'Create administrator' }).click();
    await late.page.getByRole('alert').getByText('has an administrator already').waitFor();
    await late.context.close();
  });
});

describe('the administration', () => {
  it('shows_counters_that_move_without_a_reload', async () => {
    await astrid.createRoom('Harbour', 'Boats and tides');
    await bo.page.goto(await astrid.invite());
    await bo.page.getByRole('button', { name: 'Join room' }).click();
    await bo.composer.waitFor();
    await astrid.page.getByRole('link', { name: 'Administration' }).click();
    const connections = astrid.page.locator('[data-counter=connections]');
    await connections.getByText('2', { exact: true }).waitFor();
    const dora = await Person.arrive(browser, 'dora');
    await dora.signUp(server.url);
    await connections.getByText('3', { exact: true }).waitFor();
    await dora.context.close();
    await connections.getByText('2', { exact: true }).waitFor();
    await astrid.page.getByRole('row', { name: /Rooms/ }).waitFor();
    expect(await violations(astrid.page)).toEqual([]);
  });

  it('finds_a_user_and_keeps_them_out_at_once', async () => {
    const { page } = astrid;
    await page.getByRole('link', { name: 'Users' }).click();
    await page.getByLabel('Find a user').fill('lind');
    await page.getByText('@dora').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Actions for Bo Lind' }).click();
    await page.getByRole('button', { name: 'Disable account' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable account' }).click();
    await page.getByText('Disabled', { exact: true }).waitFor();
    expect(await violations(page)).toEqual([]);
    await bo.page.getByText('You were signed out').waitFor();
    await bo.page.getByLabel('User name').fill('bo');
    await bo.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await bo.page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await bo.page.getByText('this account is disabled').waitFor();
    await page.getByRole('button', { name: 'Actions for Bo Lind' }).click();
    await page.getByRole('button', { name: 'Enable account' }).click();
    await page.getByText('Disabled', { exact: true }).waitFor({ state: 'detached' });
  });

  it('gives_a_link_by_which_a_password_is_chosen_once', async () => {
    const { page } = astrid;
    await page.getByRole('button', { name: 'Actions for Bo Lind' }).click();
    await page.getByRole('button', { name: 'Link to a new password' }).click();
    const link = await page.getByLabel('Link', { exact: true }).inputValue();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    for (const attempt of ['first', 'second']) {
      await bo.page.goto(link);
      await bo.page.reload();
      await bo.page.getByRole('heading', { name: 'Choose a new password' }).waitFor();
      await bo.page.getByLabel('Password', { exact: true }).fill(`${PASSWORD} ${attempt}`);
      await bo.page.getByRole('button', { name: 'Save and sign in' }).click();
      if (attempt === 'first') await bo.page.getByRole('button', { name: /^Account:/ }).waitFor();
      else await bo.page.getByText('was used or has expired').waitFor();
    }
    await bo.page.goto(server.url);
  });

  it('makes_another_administrator_whose_page_learns_it_by_itself', async () => {
    const { page } = astrid;
    await page.getByRole('button', { name: 'Actions for Bo Lind' }).click();
    await page.getByRole('button', { name: 'Make administrator' }).click();
    await bo.page.getByRole('link', { name: 'Administration' }).waitFor();
    await page.getByRole('button', { name: 'Actions for Bo Lind' }).click();
    await page.getByRole('button', { name: 'Remove as administrator' }).click();
    await bo.page.getByRole('link', { name: 'Administration' }).waitFor({ state: 'detached' });
    await bo.page.goto(`${server.url}/admin`);
    await bo.page.getByText('This page is for administrators').waitFor();
    await page.getByLabel('Find a user').fill('astrid');
    await page.getByRole('button', { name: 'Actions for Astrid Holm' }).click();
    await page.getByRole('button', { name: 'Remove as administrator' }).click();
    await page.getByText('the last administrator cannot be').waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
  });

  it('lists_rooms_and_storage', async () => {
    const { page } = astrid;
    await page.getByRole('link', { name: 'Rooms' }).click();
    await page.getByRole('listitem').filter({ hasText: 'Harbour' }).getByText(/nothing said yet/).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole('link', { name: 'Storage' }).click();
    await page.getByRole('listitem').filter({ hasText: 'Database' }).getByText(/KiB|MiB/).waitFor();
    await page.getByText(/free on this disk/).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it('tells_in_the_log_of_moderation_what_was_done', async () => {
    const { page } = astrid;
    await page.getByRole('link', { name: 'Moderation log' }).click();
    for (const line of [
      'Astrid Holm set the server up', 'Astrid Holm made an invitation to Harbour', 'Astrid Holm disabled the account of Bo Lind',
      'Bo Lind chose a new password by link', 'Astrid Holm removed Bo Lind as administrator',
    ]) {
      await page.getByText(line).waitFor();
    }
    expect(await violations(page)).toEqual([]);
  });

  it('gives_the_server_a_name_a_colour_and_a_logo_that_everybody_sees', async () => {
    const { page } = astrid;
    const NAME = '<img src=x onerror=alert(1)>';
    await page.getByRole('link', { name: 'Settings' }).click();
    const face = page.getByRole('region', { name: 'Name, colour and logo' });
    await page.getByLabel('Name of the server').fill(NAME);
    await page.getByLabel('Hue of the accent colour').fill('300');
    await face.getByRole('button', { name: 'Save' }).click();
    await page.waitForFunction((name) => document.title.endsWith(name), NAME);
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Choose a picture' }).click()]);
    await chooser.setFiles(harbour('logo.png', 300, 200));
    await page.locator('main img[src^="/api/v1/logo/"]').waitFor();
    expect(await violations(page)).toEqual([]);

    const stranger = await Person.arrive(browser, 'stranger', CHECKED);
    await stranger.page.goto(server.url);
    // Text, and nothing else, whatever it looks like.
    await stranger.page.getByText(NAME, { exact: true }).waitFor();
    await stranger.page.locator('header img[src^="/api/v1/logo/"]').waitFor();
    const accent = () => stranger.page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--hue'));
    expect(await accent()).toBe('300');
    expect(await violations(stranger.page)).toEqual([]);
    const manifest = await stranger.page.request.get(`${server.url}/manifest.webmanifest`);
    expect(await manifest.json()).toMatchObject({ name: NAME });
    // The next visit begins with them, before the server has answered.
    await stranger.context.setOffline(true);
    await stranger.page.reload();
    await stranger.page.getByText(NAME, { exact: true }).waitFor();
    expect(await accent()).toBe('300');
    await stranger.context.close();

    await page.getByRole('button', { name: 'Remove the picture' }).click();
    await page.locator('main img[src="/icon.svg"]').waitFor();
    await page.getByLabel('Name of the server').fill('');
    await page.getByLabel('Folkmoot’s own colour').check();
    await face.getByRole('button', { name: 'Save' }).click();
    await page.waitForFunction(() => document.title.endsWith('Folkmoot') && !('accent' in document.documentElement.dataset));
  });

  it('says_how_long_messages_are_kept_and_asks_before_any_is_deleted', async () => {
    const { page } = astrid;
    await bo.page.goto(server.url);
    await bo.open('Harbour');
    for (const text of ['low tide', 'high tide', 'spring tide']) await bo.say(text);
    await bo.allSent();
    const everywhere = page.getByRole('region', { name: 'How long messages are kept' });
    await everywhere.getByLabel('Newest messages of a room').fill('0');
    await everywhere.getByRole('button', { name: 'Save' }).click();
    expect(await everywhere.getByLabel('Newest messages of a room').evaluate((field: HTMLInputElement) => field.validity.rangeUnderflow)).toBe(true);
    await everywhere.getByLabel('Newest messages of a room').fill('');
    await everywhere.getByLabel('Days').fill('365');
    await everywhere.getByRole('button', { name: 'Save' }).click();
    await everywhere.getByRole('button', { name: 'Save and delete messages' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await everywhere.getByLabel('Days').fill('');
    await everywhere.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();

    await page.getByRole('link', { name: 'Rooms' }).click();
    const harbour = page.getByRole('listitem').filter({ hasText: 'Harbour' });
    const open = () => harbour.getByRole('button', { name: 'How long Harbour keeps messages' }).click();
    await open();
    const dialog = page.getByRole('dialog', { name: 'How long Harbour keeps messages' });
    expect(await dialog.getByLabel('As in all rooms').isChecked()).toBe(true);
    await dialog.getByLabel('Limits of its own').check();
    await dialog.getByLabel('Newest messages of a room').fill('2');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('nobody can bring them back').waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await bo.message('low tide').count()).toBe(1);
    await dialog.getByRole('button', { name: 'Save and delete messages' }).click();
    await harbour.getByText('Limits of its own').waitFor();
    await bo.message('low tide').waitFor({ state: 'detached' });
    expect(await bo.message('high tide').count()).toBe(1);
    // More is kept than before: nothing to ask about.
    await open();
    await dialog.getByLabel('As in all rooms').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await harbour.getByText('Limits of its own').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Settings' }).click();
  });

  it('says_who_may_make_an_account', async () => {
    const { page } = astrid;
    // The mark moves before the server knows.
    const choose = async (who: string) => {
      await page.getByText('Saved', { exact: true }).waitFor({ state: 'detached' });
      await page.getByLabel(who).check();
      await page.getByText('Saved', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Dismiss' }).click();
    };
    await choose('Nobody');
    const late = await Person.arrive(browser, 'late');
    const closed = late.page.getByText('takes no new accounts');
    await late.page.goto(server.url);
    await closed.waitFor();
    await choose('Everybody');
    await late.page.reload();
    await late.page.getByRole('button', { name: 'Create account' }).waitFor();
    expect(await closed.count()).toBe(0);
    await late.context.close();
  });

  it('is_walked_through_by_keyboard_alone', async () => {
    const { page } = astrid;
    await page.goto(`${server.url}/admin`);
    await page.locator('[data-counter=connections]').waitFor();
    for (const view of ['Users', 'Rooms', 'Settings', 'Storage', 'Moderation log']) {
      await tabTo(page, view);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: view, level: 2 }).waitFor();
    }
    await tabTo(page, 'Users', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Find a user');
    await page.keyboard.type('bo');
    await page.getByText('@astrid').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Actions for Bo Lind' }).waitFor();
    await tabTo(page, 'Actions for Bo Lind');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Disable account');
    await page.keyboard.press('Escape');
    await tabTo(page, 'Back to chat', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: /^Account:/ }).waitFor();
  });

  it('speaks_german_and_fits_a_phone', async () => {
    const greta = await Person.arrive(browser, 'astrid', { ...CHECKED, locale: 'de-DE', viewport: { width: 390, height: 844 } });
    const { page } = greta;
    await page.goto(server.url);
    await page.getByLabel('Benutzername').fill('astrid');
    // A phone that was never here is offered an account first.
    await page.getByRole('button', { name: 'Anmelden' }).click();
    await page.getByLabel('Passwort', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Anmelden' }).click();
    await page.getByRole('link', { name: 'Verwaltung' }).click();
    for (const view of ['Überblick', 'Personen', 'Räume', 'Einstellungen', 'Speicher', 'Moderation']) {
      await page.getByRole('link', { name: view }).click();
      await page.getByRole('heading', { name: view, level: 2 }).waitFor();
      await page.getByText('Wird geladen').waitFor({ state: 'detached' });
      expect(await violations(page)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow).toBe(0);
    }
    await page.getByText('Astrid Holm hat den Server eingerichtet').waitFor();
    await page.goto(`${server.url}/setup#fm_x`);
    await page.getByRole('heading', { name: 'Server einrichten' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await greta.context.close();
  });

  it('causes_no_error_in_the_page', () => {
    expect(astrid.errors.filter((error) => !error.includes('403'))).toEqual([]);
  });
});
