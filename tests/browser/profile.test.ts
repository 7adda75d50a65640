//! What people show of themselves: a picture that they cropped, and what they are up to; others see both at once.

import type { Locator } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { announcing, black, harbour, text, type NamedFile } from './support/picture';
import { Person } from './support/person';
import { astrid, bo, browser, meetIn, withAstridAndBo } from './support/scene';

withAstridAndBo({ astrid: CHECKED });
beforeAll(async () => {
  await meetIn('Harbour');
  await astrid.say('Good morning.');
  await bo.message('Good morning').waitFor();
});

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>boom()</script><circle r="9"/></svg>';

const cut = (file: NamedFile): NamedFile => ({ ...file, buffer: file.buffer.subarray(0, 60) });

async function openAccount(person: Person) {
  await person.page.getByRole('button', { name: /^Account:/ }).click();
  const dialog = person.page.getByRole('dialog', { name: 'Account' });
  await dialog.waitFor();
  return dialog;
}

async function choose(person: Person, dialog: Locator, file: NamedFile): Promise<void> {
  const chooser = person.page.waitForEvent('filechooser');
  await dialog.getByRole('button', { name: 'Choose a picture' }).click();
  await (await chooser).setFiles(file);
}

/** The picture beside a message, once it is drawn. */
const shownTo = (person: Person) => person.message('Good morning').locator('.avatar img');

describe('a picture', () => {
  it('is_cropped_in_the_page_by_keys_too_and_seen_by_others_at_once', async () => {
    expect(await shownTo(bo).count()).toBe(0);
    const dialog = await openAccount(astrid);
    await choose(astrid, dialog, harbour('me.png', 300, 200));
    const crop = dialog.getByRole('img', { name: /^Part of the picture/ });
    const before = await crop.evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
    await crop.focus();
    await astrid.page.keyboard.press('ArrowRight');
    await astrid.page.keyboard.press('ArrowRight');
    await expect.poll(() => crop.evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL())).not.toBe(before);
    await dialog.getByLabel('Zoom').fill('2');
    expect(await violations(astrid.page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Use picture' }).click();
    await dialog.getByRole('button', { name: 'Remove the picture' }).waitFor();
    await astrid.page.keyboard.press('Escape');

    await shownTo(bo).waitFor();
    const { width, height } = await shownTo(bo).evaluate(async (image: HTMLImageElement) => {
      await image.decode();
      return { width: image.naturalWidth, height: image.naturalHeight };
    });
    expect([width, height]).toEqual([256, 256]);
    // In every place where Astrid stands.
    await bo.page.getByRole('button', { name: 'Members' }).click();
    await bo.page.getByRole('complementary').locator('.avatar img').waitFor();
    await bo.page.getByRole('complementary').getByRole('button', { name: 'Close' }).click();
  });

  it('stays_through_a_reload_and_gives_way_to_the_drawn_face_when_it_is_removed', async () => {
    await bo.page.reload();
    await shownTo(bo).waitFor();
    const dialog = await openAccount(astrid);
    await dialog.getByRole('button', { name: 'Remove the picture' }).click();
    await dialog.getByRole('button', { name: 'Remove the picture' }).waitFor({ state: 'detached' });
    await astrid.page.keyboard.press('Escape');
    await shownTo(bo).waitFor({ state: 'detached' });
  });

  it.each([
    ['text', { ...text('me.png', 'not a picture'), mimeType: 'image/png' }, 'This file cannot be read as a picture.'],
    ['a drawing that could hold scripts', { ...text('me.svg', SVG), mimeType: 'image/svg+xml' }, 'Only PNG, JPEG, GIF and WebP are taken.'],
    ['a drawing under another name', { ...text('me.png', SVG), mimeType: 'image/png' }, 'This file cannot be read as a picture.'],
    ['the beginning of a picture', cut(harbour('me.png', 300, 200)), 'This file cannot be read as a picture.'],
    ['a header without pixels', announcing('me.png', 60_000, 60_000), 'This file cannot be read as a picture.'],
    ['more pixels than a page should hold', black('me.png', 9_000, 8_000), 'Too many pixels: a picture can have up to 64,000,000.'],
  ])('that_is_%s_is_refused_with_the_rule_in_the_dialog_itself', async (_what, file, rule) => {
    const dialog = await openAccount(astrid);
    await choose(astrid, dialog, file);
    // Beside the dialog it could be neither read aloud nor dismissed.
    await dialog.getByRole('alert').getByText(rule).waitFor();
    expect(await dialog.getByRole('img', { name: /^Part of the picture/ }).count()).toBe(0);
    await dialog.getByRole('alert').getByRole('button', { name: 'Dismiss' }).click();
    await dialog.getByText(rule).waitFor({ state: 'detached' });
    await astrid.page.keyboard.press('Escape');
    expect(astrid.errors).toEqual([]);
  });

  it('is_learnt_by_who_was_away_when_it_changed', async () => {
    await bo.context.setOffline(true);
    await bo.page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    const dialog = await openAccount(astrid);
    await choose(astrid, dialog, harbour('again.png', 80, 80));
    await dialog.getByRole('button', { name: 'Use picture' }).click();
    await dialog.getByRole('button', { name: 'Remove the picture' }).waitFor();
    await astrid.page.keyboard.press('Escape');
    expect(await shownTo(bo).count()).toBe(0);
    await bo.context.setOffline(false);
    await shownTo(bo).waitFor();
  });

  it('stands_beside_the_messages_of_who_has_left_and_is_in_no_list', async () => {
    const chidi = await Person.arrive(browser, 'chidi');
    await chidi.joinBy(await astrid.invite(), 'Chidi Obi');
    const dialog = await openAccount(chidi);
    await choose(chidi, dialog, harbour('chidi.png', 90, 60));
    await dialog.getByRole('button', { name: 'Use picture' }).click();
    await dialog.getByRole('button', { name: 'Remove the picture' }).waitFor();
    await chidi.page.keyboard.press('Escape');
    await chidi.say('I was here');
    await chidi.allSent();
    await chidi.page.getByRole('button', { name: 'Room settings' }).click();
    await chidi.page.getByRole('button', { name: 'Leave room' }).click();
    await chidi.page.getByRole('button', { name: 'Leave room' }).click();
    await bo.page.getByText('Chidi Obi left').waitFor();
    await bo.page.reload();
    await bo.message('I was here').locator('.avatar img').waitFor();
    await chidi.context.close();
  });
});

describe('a status', () => {
  const mark = (person: Person) => person.message('Good morning').locator('[data-status]');

  it('stands_beside_the_name_at_once_with_its_words_on_the_card', async () => {
    const dialog = await openAccount(astrid);
    await dialog.getByRole('button', { name: 'Emoji of the status' }).click();
    await astrid.page.getByLabel('Search emoji').fill('palm tree');
    await astrid.page.getByRole('button', { name: 'palm tree' }).first().click();
    await dialog.getByLabel('Status', { exact: true }).fill('On the water');
    await dialog.getByRole('button', { name: 'Set', exact: true }).click();
    await dialog.getByRole('button', { name: 'Clear' }).waitFor();
    await astrid.page.keyboard.press('Escape');
    await mark(bo).getByText('🌴').waitFor();
    await mark(bo).getByText('Status: On the water').waitFor({ state: 'attached' });
    await bo.message('Good morning').getByRole('button', { name: 'Astrid Holm', exact: true }).click();
    await bo.page.getByRole('dialog', { name: /^Profile of/ }).getByText('On the water').waitFor();
    await bo.page.keyboard.press('Escape');
  });

  it('ends_by_itself_and_can_be_cleared', async () => {
    await bo.page.clock.install();
    await bo.page.reload();
    await mark(bo).waitFor();
    const dialog = await openAccount(astrid);
    await dialog.getByLabel('Ends').selectOption({ label: 'in 30 minutes' });
    await dialog.getByRole('button', { name: 'Set', exact: true }).click();
    await dialog.getByText(/^Ends \w+,/).waitFor();
    await mark(bo).waitFor();
    await bo.page.clock.fastForward('31:00');
    await mark(bo).waitFor({ state: 'detached' });
    await dialog.getByRole('button', { name: 'Clear' }).click();
    await dialog.getByRole('button', { name: 'Clear' }).waitFor({ state: 'detached' });
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
