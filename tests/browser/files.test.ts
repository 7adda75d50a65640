//! Files between two people: chosen, dragged and pasted; seen as they go, stopped, refused in words, carried through a lost
//! network, shown to the other without anything moving, and never more than a file, whatever they are called.

import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { attach } from './support/attach';
import { CHECKED, violations } from './support/axe';
import type { Person } from './support/person';
import { announcing, picture, text, type NamedFile } from './support/picture';
import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';
import { XSS_CORPUS } from './support/xss_corpus';

const FILE_BYTES_MAX = 3 * 1024 * 1024;
const CONFIG_FILE = path.join(tmpdir(), `folkmoot-files-${process.pid}.toml`);
const CONFIG = `[limits]\nuploads_per_minute = 0\n[attachments]\nfile_bytes_max = ${FILE_BYTES_MAX}\nfiles_per_message_max = 3\n`;

const fired: string[] = [];

// Before the server starts, which reads it.
beforeAll(() => writeFile(CONFIG_FILE, CONFIG));
afterAll(() => rm(CONFIG_FILE, { force: true }));
withAstridAndBo({ flags: ['--config', CONFIG_FILE], astrid: CHECKED });
beforeAll(async () => {
  await bo.context.exposeFunction('boom', () => fired.push(bo.page.url()));
  await meetIn('Harbour');
});

const tray = (person: Person): Locator => person.page.locator('form').getByRole('list', { name: 'Attachments' });

/** Hands files to the page by an event that carries them. */
async function carry(person: Person, selector: string, kinds: string[], files: NamedFile[]): Promise<void> {
  const plain = files.map(({ name, mimeType, buffer }) => ({ name, mimeType, base64: buffer.toString('base64') }));
  await person.page.evaluate(
    ([target, types, contents]) => {
      const data = new DataTransfer();
      for (const { name, mimeType, base64 } of contents) {
        const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
        data.items.add(new File([bytes], name, { type: mimeType }));
      }
      for (const type of types) {
        const options = { bubbles: true, cancelable: true };
        const event = type === 'paste' ? new ClipboardEvent(type, { ...options, clipboardData: data }) : new DragEvent(type, { ...options, dataTransfer: data });
        document.querySelector(target)?.dispatchEvent(event);
      }
    },
    [selector, kinds, plain] as const,
  );
}

/** The speed of the line from here to the server; `undefined` takes the brake off. */
async function slowDown(page: Page, bytesPerSecond?: number): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: bytesPerSecond ?? -1 });
}

describe('a picture', () => {
  it('is_chosen_sent_and_seen_by_the_other_without_anything_moving', async () => {
    // The answer is held back until the place of the picture has been measured.
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    await bo.page.route('**/thumbnail', async (route) => {
      await held;
      await route.continue();
    });
    await attach(astrid, picture('harbour.png', 800, 400));
    await tray(astrid).getByText('Ready to send').waitFor();
    await astrid.say('Look at this');
    await astrid.allSent();
    const shown = bo.message('Look at this').getByRole('button', { name: 'Picture: harbour.png' });
    await shown.waitFor();
    const before = await shown.boundingBox();
    release();
    const image = shown.locator('img');
    await image.waitFor();
    await expect.poll(() => image.evaluate((element: HTMLImageElement) => element.naturalWidth)).toBe(640);
    expect(await shown.boundingBox()).toEqual(before);
    expect((before?.width ?? 0) / (before?.height ?? 1)).toBeCloseTo(2, 1);
    await bo.page.unroute('**/thumbnail');
  });

  it('opens_large_by_keyboard_and_gives_the_focus_back', async () => {
    const shown = bo.message('Look at this').getByRole('button', { name: 'Picture: harbour.png' });
    await shown.focus();
    await bo.page.keyboard.press('Enter');
    const large = bo.page.getByRole('dialog').getByRole('img', { name: 'harbour.png' });
    await large.waitFor();
    await expect.poll(() => large.evaluate((element: HTMLImageElement) => element.naturalWidth)).toBe(800);
    await bo.page.keyboard.press('Escape');
    await bo.page.getByRole('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => shown.evaluate((element) => element === document.activeElement)).toBe(true);
  });

  it('is_dropped_anywhere_in_the_room_which_says_what_may_be_dropped', async () => {
    await carry(astrid, '[role=feed]', ['dragenter', 'dragover'], [picture('a.png', 40, 40)]);
    await astrid.page.getByText('Drop files to attach them').waitFor();
    await astrid.page.getByText('Up to 3 files a message, 3 MiB each').first().waitFor();
    await carry(astrid, '[role=feed]', ['drop'], [picture('dropped.png', 60, 40)]);
    await astrid.page.getByText('Drop files to attach them').waitFor({ state: 'detached' });
    await tray(astrid).getByText('Ready to send').waitFor();
    await astrid.composer.press('Enter');
    await astrid.allSent();
    await bo.page.getByRole('button', { name: 'Picture: dropped.png' }).waitFor();
  });

  it('is_pasted_into_what_is_being_written', async () => {
    await carry(astrid, '#composer', ['paste'], [picture('pasted.png', 60, 40)]);
    await tray(astrid).getByText('pasted.png').waitFor();
    await tray(astrid).getByText('Ready to send').waitFor();
    await astrid.say('from the clipboard');
    await bo.message('from the clipboard').getByRole('button', { name: 'Picture: pasted.png' }).waitFor();
  });

  it('goes_with_its_message_when_that_is_deleted', async () => {
    await astrid.act('from the clipboard', 'Delete');
    await bo.page.getByRole('button', { name: 'Picture: pasted.png' }).waitFor({ state: 'detached' });
  });
});

describe('a file on its way', () => {
  it('shows_how_far_it_is_and_its_message_waits_for_it', async () => {
    await slowDown(astrid.page, 400_000);
    await attach(astrid, picture('slow.png', 700, 700));
    const progress = astrid.page.getByRole('progressbar', { name: 'Uploading slow.png' });
    await progress.waitFor();
    await astrid.say('it takes a while');
    await astrid.page.locator('[data-pending]').getByRole('progressbar', { name: 'Uploading slow.png' }).waitFor();
    await expect.poll(() => progress.evaluate((bar: HTMLProgressElement) => bar.value)).toBeGreaterThan(0.1);
    expect(await bo.page.getByText('it takes a while').count()).toBe(0);
    await slowDown(astrid.page);
    await bo.message('it takes a while').getByRole('button', { name: 'Picture: slow.png' }).waitFor();
    await astrid.allSent();
  });

  it('can_be_stopped', async () => {
    await slowDown(astrid.page, 100_000);
    await attach(astrid, picture('unwanted.png', 600, 600), text('wanted.txt', 'keep this'));
    await astrid.page.getByRole('progressbar', { name: 'Uploading unwanted.png' }).waitFor();
    await astrid.page.getByRole('button', { name: 'Remove unwanted.png' }).click();
    await slowDown(astrid.page);
    await tray(astrid).getByText('Ready to send').waitFor();
    await astrid.say('only one');
    const files = bo.message('only one').getByRole('list', { name: 'Attachments' }).getByRole('listitem');
    await files.first().waitFor();
    await expect.poll(() => files.allInnerTexts()).toEqual([expect.stringContaining('wanted.txt')]);
  });

  it('goes_on_after_a_lost_network_where_it_stopped_and_arrives_once', async () => {
    const begun: string[] = [];
    astrid.page.on('request', (request) => {
      if (request.method() === 'POST' && /\/(uploads|attachments)\?/.test(request.url())) begun.push(request.url());
    });
    await slowDown(astrid.page, 300_000);
    await attach(astrid, picture('persistent.png', 700, 700));
    const progress = astrid.page.getByRole('progressbar', { name: 'Uploading persistent.png' });
    await expect.poll(() => progress.evaluate((bar: HTMLProgressElement) => bar.value)).toBeGreaterThan(0.1);
    await astrid.context.setOffline(true);
    await astrid.say('through thick and thin');
    await astrid.page.locator('[data-pending]').getByText('Waiting for the connection').first().waitFor();
    await astrid.context.setOffline(false);
    await slowDown(astrid.page);
    await bo.message('through thick and thin').getByRole('button', { name: 'Picture: persistent.png' }).waitFor();
    await astrid.allSent();
    expect(await bo.page.locator('article[data-seq]').filter({ hasText: 'through thick and thin' }).count()).toBe(1);
    expect(begun).toEqual([expect.stringContaining('/uploads?name=persistent.png')]);
  });

  it('begins_anew_on_a_server_that_was_killed_in_the_middle', async () => {
    await slowDown(astrid.page, 300_000);
    await attach(astrid, picture('twice.png', 700, 700));
    const progress = astrid.page.getByRole('progressbar', { name: 'Uploading twice.png' });
    await expect.poll(() => progress.evaluate((bar: HTMLProgressElement) => bar.value)).toBeGreaterThan(0.1);
    await server.kill();
    await server.run();
    await slowDown(astrid.page);
    await astrid.say('through a crash');
    await bo.message('through a crash').getByRole('button', { name: 'Picture: twice.png' }).waitFor();
    await astrid.allSent();
  });

  it('is_asked_for_before_its_tab_closes_and_said_to_be_lost_afterwards', async () => {
    await slowDown(astrid.page, 100_000);
    await attach(astrid, picture('lost.png', 700, 700));
    await astrid.page.getByRole('progressbar', { name: 'Uploading lost.png' }).waitFor();
    await astrid.say('words that are kept');
    const asked = new Promise<string>((resolve) => {
      astrid.page.once('dialog', (dialog) => {
        resolve(dialog.type());
        void dialog.accept();
      });
    });
    await astrid.page.reload();
    expect(await asked).toBe('beforeunload');
    await slowDown(astrid.page);
    await astrid.page.getByText('Not sent: its files had not been uploaded when the page was closed').waitFor();
    const left = astrid.page.locator('[data-pending]').filter({ hasText: 'words that are kept' });
    await left.getByRole('button', { name: 'Discard' }).click();
    await left.waitFor({ state: 'detached' });
  });

  it('is_saved_under_its_name_by_the_other', async () => {
    const saving = bo.page.waitForEvent('download');
    await bo.message('only one').getByRole('button', { name: /^Download wanted.txt/ }).click();
    expect((await saving).suggestedFilename()).toBe('wanted.txt');
  });
});

describe('a limit', () => {
  it('is_named_before_anything_is_sent', async () => {
    const asked: string[] = [];
    astrid.page.on('request', (request) => {
      if (request.method() === 'POST') asked.push(request.url());
    });
    const large: NamedFile = { name: 'large.txt', mimeType: 'text/plain', buffer: Buffer.alloc(FILE_BYTES_MAX + 1, 'a') };
    const page: NamedFile = { name: 'page.html', mimeType: 'text/html', buffer: Buffer.from('<script>boom()</script>') };
    await attach(astrid, large, page, text('empty.txt', ''));
    await tray(astrid).getByText('Too large: a file can be up to 3 MiB.').waitFor();
    await tray(astrid).getByText('This server takes no files of type text/html.').waitFor();
    await tray(astrid).getByText('This file is empty.').waitFor();
    expect(asked).toEqual([]);
    await expect.poll(() => astrid.page.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true);
    expect(await violations(astrid.page)).toEqual([]);
    for (const name of ['large.txt', 'page.html', 'empty.txt']) await astrid.page.getByRole('button', { name: `Remove ${name}` }).click();
    await attach(astrid, ...[1, 2, 3, 4].map((number) => text(`${number}.txt`, 'x')));
    await tray(astrid).getByText('A message can have up to 3 files.').waitFor();
    await astrid.page.getByRole('button', { name: 'Remove 4.txt' }).click();
    await expect.poll(() => tray(astrid).getByText('Ready to send').count()).toBe(3);
    await astrid.say('three of four');
    await bo.message('three of four').getByRole('button', { name: /^Download 3.txt/ }).waitFor();
  });

  it('that_many_files_break_takes_one_step_to_be_rid_of_them', async () => {
    await attach(astrid, ...Array.from({ length: 50 }, (_, number) => text(`shot ${number}.txt`, 'x')));
    await astrid.page.getByRole('button', { name: 'Remove what cannot be sent: 47 files' }).click();
    await expect.poll(() => tray(astrid).getByText('Ready to send').count()).toBe(3);
    expect(await tray(astrid).getByRole('listitem').count()).toBe(3);
    expect(await astrid.page.getByRole('button', { name: /cannot be sent/ }).count()).toBe(0);
    expect(await astrid.composer.evaluate((field) => field === document.activeElement)).toBe(true);
    await astrid.say('the first three of fifty');
    await bo.message('the first three of fifty').getByRole('button', { name: /^Download shot 2.txt/ }).waitFor();
  });

  it('that_only_the_content_can_break_is_told_in_the_servers_words', async () => {
    await attach(astrid, text('photo.txt', '<html ><script>boom()</script>'));
    await tray(astrid).getByText(/is text\/html by its content/).waitFor();
    await astrid.page.getByRole('button', { name: 'Remove photo.txt' }).click();
  });

  it('of_names_is_none_for_who_attaches_a_file_that_a_disk_can_hold', async () => {
    await attach(astrid, text(`${'n'.repeat(251)}.txt`, 'a long name'), text(`\u202egnp.${'א'.repeat(120)}.txt`, 'and one that turns round'));
    await expect.poll(() => tray(astrid).getByText('Ready to send').count()).toBe(2);
    await astrid.say('by any name');
    const files = bo.message('by any name').getByRole('list', { name: 'Attachments' });
    await files.getByText(`${'n'.repeat(123)}….txt`).waitFor();
    expect(await files.textContent()).not.toContain('\u202e');
    expect(await bo.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  });

  it('that_a_file_will_always_break_offers_no_other_try', async () => {
    const again = astrid.page.getByRole('button', { name: /^Try again/ });
    await attach(astrid, announcing('vast.png', 30_000, 30_000));
    await tray(astrid).getByText(/pixels/).waitFor();
    expect(await again.count()).toBe(0);
    await astrid.page.getByRole('button', { name: 'Remove vast.png' }).click();

    await slowDown(astrid.page, 100_000);
    await attach(astrid, picture('ahead.png', 300, 300), announcing('vast.png', 30_000, 30_000));
    await astrid.page.getByRole('progressbar', { name: 'Uploading ahead.png' }).waitFor();
    await astrid.say('with a picture that nobody can open');
    await slowDown(astrid.page);
    const pending = astrid.page.locator('[data-pending="failed"]').filter({ hasText: 'that nobody can open' });
    await pending.getByText(/Not sent: .*pixels/).waitFor();
    expect(await again.count()).toBe(0);
    await pending.getByRole('button', { name: 'Discard' }).click();
    await pending.waitFor({ state: 'detached' });
  });

  it('that_is_learnt_only_after_its_message_was_sent_is_told_there', async () => {
    await astrid.page.route('**/api/v1/limits', async (route) => {
      await astrid.page.locator('[data-pending]').filter({ hasText: 'sent in a hurry' }).waitFor();
      await route.continue();
    });
    await attach(astrid, text('nothing.txt', ''));
    await tray(astrid).getByText('nothing.txt').waitFor();
    await astrid.say('sent in a hurry');
    const pending = astrid.page.locator('[data-pending="failed"]').filter({ hasText: 'sent in a hurry' });
    await pending.getByText('This file is empty.').waitFor();
    expect(await pending.getByRole('button', { name: 'Try again' }).count()).toBe(0);
    await astrid.page.unroute('**/api/v1/limits');
    await pending.getByRole('button', { name: 'Discard' }).click();
    await pending.waitFor({ state: 'detached' });
  });
});

describe('everyone', () => {
  it('can_use_messages_with_files_and_the_large_picture', async () => {
    expect(await violations(astrid.page)).toEqual([]);
    await astrid.message('it takes a while').getByRole('button', { name: 'Picture: slow.png' }).click();
    await astrid.page.getByRole('dialog').getByRole('img').waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await astrid.page.keyboard.press('Escape');
    await astrid.page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('can_attach_and_remove_files_by_keyboard_alone', async () => {
    const { page } = astrid;
    // Asked for first: until the browser has heard that somebody waits for its chooser, it opens none and says that it was cancelled.
    const chooser = page.waitForEvent('filechooser');
    await astrid.composer.focus();
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await (await chooser).setFiles([text('keys.txt', 'typed')]);
    await tray(astrid).getByText('Ready to send').waitFor();
    await expect.poll(() => astrid.composer.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await tray(astrid).waitFor({ state: 'detached' });
  });
});

describe('hostile names of files', () => {
  it('are_shown_as_text_and_never_run', async () => {
    const taken = await astrid.page.evaluate(async (names) => {
      const { token } = JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { token: string };
      const room = location.pathname.split('/')[2] ?? '';
      const post = (target: string, body: string, type: string) =>
        fetch(`/api/v1/rooms/${room}/${target}`, { method: 'POST', body, headers: { authorization: `Bearer ${token}`, 'content-type': type } });
      let sent = 0;
      for (const [index, name] of names.entries()) {
        const uploaded = await post(`attachments?name=${encodeURIComponent(name)}`, 'harmless', 'application/octet-stream');
        if (!uploaded.ok) continue;
        const { id } = (await uploaded.json()) as { id: string };
        await post('messages', JSON.stringify({ key: `name-${index}`, body: '', attachments: [id] }), 'application/json');
        sent += 1;
      }
      return sent;
    }, XSS_CORPUS);
    expect(taken).toBeGreaterThan(90);
    await astrid.say('that was all');
    await bo.message('that was all').waitFor();
    await bo.everything();
    const names = await bo.page.getByRole('button', { name: /^Download/ }).count();
    expect(names).toBeGreaterThan(0);
    expect(fired).toEqual([]);
  });

  it('leave_both_pages_without_an_error', () => {
    // What the network test broke and the refusals answered is in the browser's own log, not an error of the page.
    const own = (person: Person) => person.errors.filter((error) => !/Failed to load resource/.test(error));
    expect(own(astrid)).toEqual([]);
    expect(own(bo)).toEqual([]);
  });
});
