//! A message that is passed on says whose it is and leads to where it stands.

import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
  await bo.say('The *crane* comes at nine.\nBring gloves.');
  await bo.allSent();
  await astrid.createRoom('Workshop');
  await astrid.open('Harbour');
  await astrid.message('The crane').waitFor();
});

describe('a forwarded message', () => {
  it('says_who_wrote_it_and_leads_to_where_it_stands', async () => {
    const { page } = astrid;
    await astrid.act('The crane', 'Forward');
    await page.getByLabel('To a room or person').fill('work');
    await page.keyboard.press('Enter');
    await page.locator('[data-toast]').getByRole('button', { name: 'Open' }).click();
    await page.getByRole('heading', { name: 'Workshop', level: 1 }).waitFor();
    const passed = astrid.message('The crane');
    expect(await passed.locator('.body strong').first().textContent()).toBe('Bo Lind');
    expect(await passed.locator('.body blockquote').textContent()).toMatch(/The crane comes at nine\.\s*Bring gloves\./);
    await passed.getByRole('link', { name: '↗' }).click();
    await page.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    await astrid.message('Bring gloves').waitFor();
  });

  it('goes_as_it_was_changed_meanwhile_and_not_at_all_once_it_is_deleted', async () => {
    const { page } = astrid;
    await bo.say('Come at eight.');
    await astrid.message('Come at eight').waitFor();
    await astrid.act('Come at eight', 'Forward');
    await bo.act('Come at eight', 'Edit');
    await bo.page.getByLabel('Edit message').fill('Come at ten.');
    await bo.page.keyboard.press('Enter');
    await page.locator('article').filter({ hasText: 'Come at ten' }).waitFor();
    await page.getByLabel('To a room or person').fill('work');
    await page.keyboard.press('Enter');
    await page.locator('[data-toast]').getByRole('button', { name: 'Open' }).click();
    await astrid.message('Come at ten').waitFor();
    await astrid.open('Harbour');
    await astrid.act('Come at ten', 'Forward');
    await page.getByRole('dialog').waitFor();
    await bo.act('Come at ten', 'Delete');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText('This message was deleted.').first().waitFor();
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
