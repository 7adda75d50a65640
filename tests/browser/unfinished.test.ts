//! What one has begun and not sent is not lost, whatever comes between: a reload, another room, a word that is still being
//! composed, a mute. And what cannot be sent at all says so.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { call, openRoomOf } from './support/call';
import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

const MUTE_MS = 3_000;

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
  await bo.say('Who has the keys?');
  await astrid.say('A typo of mine.');
  await astrid.message('A typo').waitFor();
  await astrid.createRoom('Workshop');
  await astrid.open('Harbour');
});

describe('a message that is being written', () => {
  it('keeps_its_last_letters_through_a_reload', async () => {
    await astrid.composer.fill('Half a sentence');
    // At once: sooner than what is typed is saved by and by.
    await astrid.page.reload();
    await astrid.composer.waitFor();
    expect(await astrid.composer.inputValue()).toBe('Half a sentence');
  });

  it('keeps_what_it_answers_through_a_reload', async () => {
    await astrid.act('Who has the keys', 'Reply');
    await astrid.composer.fill('I do.');
    await astrid.page.reload();
    await astrid.page.getByText('Replying to Bo Lind').waitFor();
    await astrid.composer.press('Enter');
    await bo.message('I do.').getByRole('button', { name: /Go to the message by Bo Lind/ }).waitFor();
    await astrid.page.reload();
    await astrid.message('I do.').waitFor();
    expect(await astrid.page.getByText('Replying to').count()).toBe(0);
  });

  it('is_gone_from_another_tab_once_it_is_sent', async () => {
    await astrid.composer.fill('Said in one tab.');
    const other = await astrid.context.newPage();
    // As soon as it is saved, the other tab has it.
    await expect.poll(async () => {
      await other.goto(astrid.page.url());
      await other.locator('#composer').waitFor();
      return other.locator('#composer').inputValue();
    }).toBe('Said in one tab.');
    await other.locator('#composer').press('Enter');
    await bo.message('Said in one tab').waitFor();
    await expect.poll(() => astrid.composer.inputValue()).toBe('');
    await astrid.page.reload();
    await astrid.composer.waitFor();
    expect(await astrid.composer.inputValue()).toBe('');
    await other.close();
  });

  it('is_not_sent_by_the_enter_that_ends_a_word_being_composed', async () => {
    await astrid.composer.fill('こんにちは');
    // As Safari tells it: the composition has ended already, and only the code says whose key it was.
    await astrid.composer.evaluate((field) => {
      field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }));
    });
    expect(await astrid.composer.inputValue()).toBe('こんにちは');
    await astrid.composer.press('Enter');
    await bo.message('こんにちは').waitFor();
    expect(await astrid.composer.inputValue()).toBe('');
  });
});

describe('an answer to a message that is deleted meanwhile', () => {
  it('is_said_without_quoting_it', async () => {
    await astrid.say('Ask me anything.');
    await bo.message('Ask me anything').waitFor();
    await bo.act('Ask me anything', 'Reply');
    await bo.context.setOffline(true);
    await bo.page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    await bo.say('Why is the sea salty?');
    await astrid.act('Ask me anything', 'Delete');
    await astrid.message('This message was deleted').waitFor();
    // Not only hidden for the moment in which it can be undone.
    await astrid.page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
    await bo.context.setOffline(false);
    await bo.allSent();
    await astrid.message('Why is the sea salty').waitFor();
    expect(await bo.page.getByText('Not sent').count()).toBe(0);
  });
});

describe('an answer to a message that is changed meanwhile', () => {
  it('shows_it_as_it_is_now', async () => {
    await astrid.say('High water at six.');
    await bo.message('High water at six').waitFor();
    await bo.act('High water at six', 'Reply');
    await bo.page.locator('form').getByText('High water at six.').waitFor();
    await astrid.act('High water at six', 'Edit');
    await astrid.page.getByRole('textbox', { name: 'Edit message' }).fill('High water at seven.');
    await astrid.page.keyboard.press('Enter');
    await bo.page.locator('form').getByText('High water at seven.').waitFor({ timeout: 10_000 });
    await bo.say('Thank you.');
    await astrid.message('Thank you').waitFor();
  });
});

describe('an edit that is being made', () => {
  it('is_there_when_one_comes_back_from_another_room', async () => {
    await astrid.act('A typo', 'Edit');
    const field = astrid.page.getByRole('textbox', { name: 'Edit message' });
    await field.fill('No typo in here any more.');
    await astrid.open('Workshop');
    await astrid.open('Harbour');
    expect(await field.inputValue()).toBe('No typo in here any more.');
    await field.press('Enter');
    await bo.message('No typo in here').waitFor();
    // It is over: the next one begins with what the message says.
    await astrid.act('No typo in here', 'Edit');
    expect(await field.inputValue()).toBe('No typo in here any more.');
    await field.press('Escape');
  });
});

describe('an edit of a message that a moderator deletes', () => {
  const field = () => bo.page.getByRole('textbox', { name: 'Edit message' });

  it('ends_and_what_was_written_can_be_copied', async () => {
    await bo.say('Not for this room.');
    await bo.act('Not for this room', 'Edit');
    await field().fill('Better for this room.');
    await astrid.act('Not for this room', 'Delete');
    await astrid.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await bo.page.getByText('The message that you were changing was deleted.').waitFor();
    expect(await field().count()).toBe(0);
    await bo.message('This message was deleted').waitFor();
    await bo.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await bo.page.locator('[data-toast]').getByRole('button', { name: 'Copy text' }).click();
    await expect.poll(() => bo.page.evaluate(() => navigator.clipboard.readText())).toBe('Better for this room.');
    await bo.page.reload();
    await bo.message('This message was deleted').waitFor();
    expect(await field().count()).toBe(0);
  });
});

describe('an edit that is being made in one of two tabs', () => {
  it('is_kept_through_a_reload_and_over_in_both_once_it_is_saved', async () => {
    await astrid.act('No typo in here', 'Edit');
    const field = astrid.page.getByRole('textbox', { name: 'Edit message' });
    await field.fill('Kept to its last letter.');
    await astrid.page.reload();
    await expect.poll(() => field.inputValue()).toBe('Kept to its last letter.');
    const other = await astrid.context.newPage();
    await other.goto(astrid.page.url());
    const there = other.getByRole('textbox', { name: 'Edit message' });
    await expect.poll(() => there.inputValue()).toBe('Kept to its last letter.');
    await there.press('Enter');
    await bo.message('Kept to its last letter').waitFor();
    await field.waitFor({ state: 'detached' });
    await astrid.page.reload();
    await astrid.message('Kept to its last letter').waitFor();
    expect(await field.count()).toBe(0);
    await other.close();
  });
});

describe('an answer that is begun in a thread', () => {
  it('is_kept_through_a_reload_in_its_thread_and_gone_once_it_is_sent', async () => {
    const field = astrid.page.getByRole('complementary', { name: 'Thread' }).getByRole('textbox');
    await astrid.act('Kept to its last', 'Show thread');
    await field.fill('Half an answer');
    await astrid.page.reload();
    await astrid.message('Kept to its last').waitFor();
    await astrid.act('Who has the keys', 'Show thread');
    await expect.poll(() => field.inputValue()).toBe('');
    await astrid.act('Kept to its last', 'Show thread');
    await expect.poll(() => field.inputValue()).toBe('Half an answer');
    // That of the room is another one.
    expect(await astrid.composer.inputValue()).toBe('');
    await field.press('Enter');
    await bo.message('Half an answer').waitFor();
    await astrid.page.reload();
    await astrid.act('Kept to its last', 'Show thread');
    await expect.poll(() => field.inputValue()).toBe('');
    await astrid.page.getByRole('complementary', { name: 'Thread' }).getByRole('button', { name: 'Close' }).click();
  });
});

describe('a draft in a browser that keeps no more', () => {
  it('is_there_when_one_comes_back_from_another_room', async () => {
    const other = await astrid.context.newPage();
    await other.addInitScript(() => {
      Storage.prototype.setItem = () => {
        throw new DOMException('full', 'QuotaExceededError');
      };
    });
    await other.goto(astrid.page.url());
    const composer = other.locator('#composer');
    await composer.fill('Nowhere else.');
    for (const room of ['Workshop', 'Harbour']) {
      await other.getByRole('link', { name: room }).click();
      await other.getByRole('heading', { name: room, level: 1 }).waitFor();
    }
    await expect.poll(() => composer.inputValue()).toBe('Nowhere else.');
    await composer.fill('');
    await other.close();
  });
});

describe('who is muted', () => {
  it('writes_again_when_that_ends_without_doing_anything', async () => {
    const room = openRoomOf(astrid.page);
    const user = await bo.page.evaluate(() => (JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { user: { id: string } }).user.id);
    await bo.composer.waitFor();
    await call(astrid.page, [['room.mute', { room, user, until: Date.now() + MUTE_MS }]]);
    await bo.page.getByText('You are muted in this room until').waitFor();
    await bo.composer.waitFor({ timeout: MUTE_MS + 10_000 });
    await bo.say('May I?');
    await astrid.message('May I?').waitFor();
  });

  it('reads_until_when_beside_what_waited_and_is_refused_and_loses_none_of_it', async () => {
    const room = openRoomOf(astrid.page);
    const user = await bo.page.evaluate(() => (JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { user: { id: string } }).user.id);
    await bo.context.setOffline(true);
    await bo.page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    await bo.say('Said without a network.');
    await bo.composer.fill('And half a sentence');
    await call(astrid.page, [['room.mute', { room, user, until: Date.now() + 2 * MUTE_MS }]]);
    await bo.context.setOffline(false);
    const refused = bo.page.locator('[data-pending="failed"]').filter({ hasText: 'Said without a network' });
    await refused.getByText(/Not sent: You are muted in this room until \S*day.* at \d\d:\d\d/).waitFor();
    await bo.composer.waitFor({ timeout: 2 * MUTE_MS + 10_000 });
    expect(await bo.composer.inputValue()).toBe('And half a sentence');
    await bo.composer.fill('');
    await refused.getByRole('button', { name: 'Try again' }).click();
    await astrid.message('Said without a network').waitFor();
  });
});

describe('a text that is too long for a message', () => {
  it('goes_as_a_file_when_it_is_pasted_and_the_field_stays_quick', async () => {
    const took = await astrid.composer.evaluate((field: HTMLTextAreaElement) => {
      field.focus();
      const data = new DataTransfer();
      data.setData('text/plain', 'The tide comes in. '.repeat(55_000));
      const begin = performance.now();
      field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
      return performance.now() - begin;
    });
    const tray = astrid.page.locator('form').getByRole('list', { name: 'Attachments' });
    await tray.getByText('message.txt').waitFor();
    expect(took).toBeLessThan(1_000);
    expect(await astrid.composer.inputValue()).toBe('');
    await astrid.page.getByText('Ready to send').waitFor();
    await astrid.composer.press('Enter');
    await bo.page.getByRole('button', { name: /message\.txt/ }).waitFor();
  });
});

describe('a file that is gone from the disk', () => {
  it('holds_up_nothing_that_is_said_after_its_message', async () => {
    const file = path.join(tmpdir(), `folkmoot-gone-${process.pid}.txt`);
    await writeFile(file, 'as it was chosen');
    const pending = (words: string) => astrid.page.locator('[data-pending]').filter({ hasText: words });
    await astrid.context.setOffline(true);
    await astrid.page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    const chooser = astrid.page.waitForEvent('filechooser');
    await astrid.page.getByRole('button', { name: /^Attach files/ }).click();
    await (await chooser).setFiles(file);
    await astrid.page.getByRole('list', { name: 'Attachments' }).getByText(path.basename(file)).waitFor();
    await astrid.say('with a file that goes');
    await astrid.say('words behind it');
    await pending('words behind it').waitFor();
    await rm(file);
    await astrid.context.setOffline(false);
    await bo.message('words behind it').waitFor();
    await pending('with a file that goes').getByText('Not sent: a file was changed or removed').waitFor();
    await pending('with a file that goes').getByRole('button', { name: 'Discard' }).click();
    await astrid.allSent();
  });
});

describe('a folder', () => {
  it('is_refused_in_words_and_its_neighbours_are_taken', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'folkmoot-folder-'));
    const devtools = await astrid.context.newCDPSession(astrid.page);
    const box = await astrid.composer.boundingBox();
    const [x, y] = [(box?.x ?? 0) + 40, (box?.y ?? 0) - 100];
    const data = { items: [], files: [folder, import.meta.filename], dragOperationsMask: 1 };
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const) await devtools.send('Input.dispatchDragEvent', { type, x, y, data });
    await astrid.page.getByText('A folder cannot be attached').waitFor();
    const tray = astrid.page.locator('form').getByRole('list', { name: 'Attachments' });
    await tray.getByText(path.basename(import.meta.filename)).waitFor();
    expect(await tray.getByRole('listitem').count()).toBe(1);
    await rm(folder, { recursive: true });
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
