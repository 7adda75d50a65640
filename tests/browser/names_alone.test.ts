//! The main roads by roles and names alone, as a screen reader tells them: no selector, no number, no text that has no role.

import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { PASSWORD, Person } from './support/person';
import { browser, server, withServer } from './support/scene';

withServer();

/** A message is announced by who said it; what it says is its description. */
function messageOf(page: Page, name: string, description: string | RegExp) {
  return page.getByRole('feed', { name: 'Messages in Lighthouse' }).getByRole('article', { name, description }).last();
}

describe('by_roles_and_names_alone', () => {
  it('leads_from_an_account_to_a_message_an_answer_a_reaction_a_search_settings_and_out', async () => {
    const vera = await Person.arrive(browser, 'vera');
    const { page } = vera;
    await page.goto(server.url);

    await page.getByRole('main').getByRole('heading', { name: 'Create your account', level: 1 }).waitFor();
    await page.getByRole('textbox', { name: 'User name', description: /characters/ }).fill('vera');
    await page.getByRole('textbox', { name: 'Display name', description: /Optional/ }).fill('Vera Lynn');
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();

    await page.getByRole('navigation', { name: 'Rooms' }).getByRole('button', { name: 'Create room' }).click();
    const creating = page.getByRole('dialog', { name: 'Create room' });
    await creating.getByRole('textbox', { name: 'Room name' }).fill('Lighthouse');
    await creating.getByRole('radio', { name: 'Hidden', checked: true }).waitFor();
    await creating.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('heading', { name: 'Lighthouse', level: 1 }).waitFor();
    await page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: 'Lighthouse' }).waitFor();

    const field = page.getByRole('region', { name: 'Lighthouse' }).getByRole('textbox', { name: 'Message Lighthouse' });
    await field.fill('The lamp needs oil.');
    await page.getByRole('button', { name: 'Send' }).click();
    const first = messageOf(page, 'Vera Lynn', 'The lamp needs oil.');
    await first.focus();

    await first.getByRole('group', { name: 'Message actions' }).getByRole('button', { name: 'Reply' }).click();
    await field.fill('Brought up this morning.');
    await page.getByRole('button', { name: 'Send' }).click();
    const second = messageOf(page, 'Vera Lynn', 'Brought up this morning.');
    await second.getByRole('button', { name: /The lamp needs oil/ }).waitFor();

    await second.focus();
    await second.getByRole('button', { name: 'React', exact: true }).click();
    const emoji = page.getByRole('dialog', { name: 'Emoji' });
    await emoji.getByRole('textbox', { name: 'Search emoji' }).fill('tada');
    await emoji.getByRole('button', { name: 'party popper' }).click();
    await second.getByRole('button', { name: '🎉, 1 person, including you', pressed: true }).waitFor();

    await page.getByRole('group', { name: 'Room actions' }).getByRole('button', { name: 'Search' }).click();
    const search = page.getByRole('complementary', { name: 'Search' });
    await search.getByRole('searchbox').fill('lamp');
    await search.getByRole('status').filter({ hasText: '1 message' }).waitFor();
    await search.getByRole('button', { name: /Vera Lynn.*The lamp needs oil/ }).click();
    await search.getByRole('button', { name: 'Close' }).click();

    await page.getByRole('button', { name: 'Account: Vera Lynn' }).click();
    const account = page.getByRole('dialog', { name: 'Account' });
    await account.getByRole('group', { name: 'Appearance' }).getByRole('button', { name: 'Dark', pressed: false }).click();
    await account.getByRole('group', { name: 'Appearance' }).getByRole('button', { name: 'Dark', pressed: true }).waitFor();
    await account.getByRole('textbox', { name: 'Display name' }).fill('Vera');
    await account.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog', { name: 'Account' }).getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Account: Vera' }).click();
    await account.getByRole('button', { name: 'Sign out' }).click();
    // Somebody who was here before is asked to sign in.
    await page.getByRole('heading', { name: 'Welcome back', level: 1 }).waitFor();
    expect(vera.errors).toEqual([]);
    await vera.context.close();
  });
});
