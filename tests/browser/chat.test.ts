//! Two people meet through an invitation and talk: the main road through the product, in a real browser on the real server.

import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';

withAstridAndBo();
beforeAll(() => meetIn('Harbour', 'Boats and tides'));

describe('two people', () => {
  it('see_what_the_other_writes', async () => {
    await astrid.say('Good morning, **Bo**!');
    await bo.message('Good morning, Bo!').waitFor();
    await bo.say('Morning @astrid, on my way.');
    await astrid.message('on my way').waitFor();
    expect(await astrid.page.locator('.mention.me').count()).toBe(1);
  });

  it('are_never_told_that_what_they_see_arriving_is_unread', async () => {
    await astrid.page.evaluate(() => {
      const told: string[] = [];
      // Also what was taken back before anybody could see it: setting a title twice costs more than drawing a message.
      const title = document.querySelector('title') ?? document.head;
      new MutationObserver((changes) => told.push(...changes.flatMap(({ addedNodes }) => [...addedNodes].map((node) => node.textContent ?? ''))))
        .observe(title, { childList: true });
      Object.assign(window, { told });
    });
    for (const tide of ['One tide.', 'Two tides.', 'Three tides.']) {
      await bo.say(tide);
      await astrid.message(tide).waitFor();
    }
    expect(await astrid.page.evaluate(() => (window as unknown as { told: string[] }).told)).toEqual([]);
  });

  it('see_each_other_typing', async () => {
    await bo.composer.pressSequentially('hm');
    await astrid.page.getByText('Bo Lind is typing').waitFor();
    await bo.composer.fill('');
  });

  it('edit_and_delete_in_place', async () => {
    await bo.say('The boat is reed.');
    await bo.act('boat is reed', 'Edit');
    await bo.page.getByLabel('Edit message').fill('The boat is red.');
    await bo.page.keyboard.press('Enter');
    await astrid.message('boat is red').getByText('(edited)').waitFor();
    await bo.say('Never mind this one.');
    await astrid.message('Never mind').waitFor();
    await bo.act('Never mind', 'Delete');
    await astrid.message('This message was deleted').waitFor({ timeout: 15_000 });
  });

  it('answer_with_a_quote_and_react', async () => {
    await astrid.act('boat is red', 'Reply');
    await astrid.say('Then bring the long rope.');
    await bo.message('long rope').getByRole('button', { name: /Go to the message by Bo Lind/ }).waitFor();
    await bo.act('long rope', 'React');
    await bo.page.getByRole('dialog', { name: 'Emoji' }).getByRole('button', { name: '👍' }).click();
    await astrid.message('long rope').getByRole('button', { name: /👍, 1 person/ }).click();
    await bo.message('long rope').getByRole('button', { name: /👍, 2 people, including you/ }).waitFor();
  });

  it('react_with_one_click_where_they_point', async () => {
    const rope = astrid.message('long rope');
    await rope.hover();
    const laughter = rope.getByRole('button', { name: 'React: 😂', exact: true });
    expect(await laughter.getAttribute('aria-pressed')).toBe('false');
    await laughter.click();
    await bo.message('long rope').getByRole('button', { name: /😂, 1 person/ }).waitFor();
    await expect.poll(() => laughter.getAttribute('aria-pressed')).toBe('true');
    await laughter.click();
    await bo.message('long rope').getByRole('button', { name: /😂, 1 person/ }).waitFor({ state: 'detached' });
  });

  it('read_the_lines_around_the_message_that_they_point_at', async () => {
    for (const line of ['The line above.', 'The line pointed at.']) await astrid.say(line);
    await astrid.allSent();
    const pointedAt = astrid.message('The line pointed at');
    await pointedAt.hover();
    const toolbar = await pointedAt.getByRole('group', { name: 'Message actions' }).boundingBox();
    const row = await pointedAt.boundingBox();
    if (!toolbar || !row) throw new Error('no toolbar where one points');
    expect(toolbar.y).toBeGreaterThanOrEqual(row.y - 0.5);
    expect(toolbar.y + toolbar.height).toBeLessThanOrEqual(row.y + row.height + 0.5);
  });

  it('complete_names_and_emoji_while_writing', async () => {
    await astrid.composer.pressSequentially('Thanks @bo');
    await astrid.page.getByRole('option', { name: /@bo/ }).waitFor();
    await astrid.page.keyboard.press('Enter');
    await astrid.composer.pressSequentially(':tad');
    await astrid.page.getByRole('option', { name: /:tada:/ }).waitFor();
    await astrid.page.keyboard.press('Tab');
    await astrid.page.keyboard.press('Enter');
    await bo.message('Thanks @bo 🎉').waitFor();
  });

  it('find_unread_and_mention_badges_and_the_new_messages_line', async () => {
    await bo.createRoom('Elsewhere');
    await astrid.say('One.');
    await astrid.say('Two, @bo.');
    await bo.page.getByRole('link', { name: /Harbour.*2 unread messages, 1 mention/ }).click();
    await bo.message('Two, @bo').waitFor();
    await bo.page.locator('article', { hasText: 'One.' }).getByText('New', { exact: true }).waitFor();
    await bo.page.getByRole('link', { name: 'Harbour', exact: true }).waitFor();
  });

  it('keep_a_draft_per_room', async () => {
    await bo.composer.fill('not yet');
    await bo.open('Elsewhere');
    await expect.poll(() => bo.composer.inputValue()).toBe('');
    await bo.open('Harbour');
    await expect.poll(() => bo.composer.inputValue()).toBe('not yet');
    await bo.composer.fill('');
  });

  it('write_to_each_other_directly', async () => {
    await bo.page.getByRole('button', { name: 'New direct message' }).click();
    await bo.page.getByLabel('Find a person').fill('ast');
    await bo.page.getByRole('dialog').getByRole('button', { name: /Astrid Holm/ }).click();
    await bo.page.getByRole('heading', { name: 'Astrid Holm', level: 1 }).waitFor();
    await bo.say('Just between us.');
    await astrid.page.getByRole('link', { name: /Bo Lind.*1 unread message/ }).click();
    await astrid.message('Just between us').waitFor();
    await astrid.open('Harbour');
    await bo.open('Harbour');
  });

  it('find_everything_after_a_reload_and_after_a_restart', async () => {
    const before = await astrid.everything();
    await astrid.page.reload();
    await astrid.message('Two, @bo').waitFor();
    expect(await astrid.everything()).toEqual(before);
    await server.kill();
    await server.run();
    await astrid.page.reload();
    await astrid.isOnline();
    expect(await astrid.everything()).toEqual(before);
  });

  it('cause_no_error_in_either_page', () => {
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
