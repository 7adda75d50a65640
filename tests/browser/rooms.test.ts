//! Running a room and an account: roles, muting, removing, invitations, devices, preferences, and a gap in history.

import { beforeAll, describe, expect, it } from 'vitest';

import { archivedRooms } from './support/archive';
import { fillRoom } from './support/fill';
import { Person } from './support/person';
import { astrid, bo, browser, meetIn, server, withAstridAndBo } from './support/scene';

/** More than one subscribe recovers (RECOVERED_EVENTS_MAX). */
const MISSED = 1_100;

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
  await astrid.say('written by Astrid');
  await bo.message('written by Astrid').waitFor();
});

/** Opens what the owner may do with Bo. */
async function actionsForBo(): Promise<void> {
  const button = astrid.page.getByRole('button', { name: 'Actions for Bo Lind' });
  if (!(await astrid.page.getByRole('complementary').isVisible())) await astrid.page.getByRole('button', { name: 'Members' }).click();
  await button.waitFor();
  if ((await button.getAttribute('aria-expanded')) !== 'true') await button.click();
}

/** Says yes to the question. */
async function confirmed(answer: string): Promise<void> {
  await astrid.page.getByRole('dialog').getByRole('button', { name: answer, exact: true }).click();
}

describe('a room', () => {
  it('takes_a_new_name_and_topic_and_tells_everyone', async () => {
    await astrid.page.getByRole('button', { name: 'Room settings' }).click();
    await astrid.page.getByLabel('Room name').fill('North harbour');
    await astrid.page.getByLabel('Topic').fill('Tides only');
    await astrid.page.getByRole('button', { name: 'Save' }).click();
    await astrid.page.getByText('Saved', { exact: true }).waitFor();
    await astrid.page.keyboard.press('Escape');
    await bo.page.getByRole('heading', { name: 'North harbour', level: 1 }).waitFor();
    await bo.page.getByText('Tides only').waitFor();
  });

  it('lets_a_moderator_delete_what_others_wrote', async () => {
    await bo.message('written by Astrid').hover();
    await bo.message('written by Astrid').getByRole('button', { name: 'More' }).click();
    await bo.page.getByRole('menuitem', { name: 'Copy text' }).waitFor();
    expect(await bo.page.getByRole('menuitem', { name: 'Delete' }).count()).toBe(0);
    await bo.page.keyboard.press('Escape');
    await actionsForBo();
    await astrid.page.getByLabel('Role of Bo Lind').selectOption('moderator');
    await astrid.page.getByText('@bo · Moderator').waitFor();
    await bo.page.mouse.move(0, 0);
    await bo.act('written by Astrid', 'Delete');
    await bo.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await astrid.message('This message was deleted').waitFor();
    await astrid.page.getByLabel('Role of Bo Lind').selectOption('member');
  });

  it('says_so_to_someone_who_is_muted', async () => {
    await actionsForBo();
    await astrid.page.getByRole('button', { name: 'Mute for an hour' }).click();
    await bo.page.getByText(/You are muted in this room until/).waitFor();
    await astrid.page.getByRole('button', { name: 'Unmute' }).click();
    await bo.composer.waitFor();
  });

  it('silences_its_badge_for_those_who_want_nothing', async () => {
    await bo.page.getByRole('button', { name: 'Room settings' }).click();
    await bo.page.getByLabel('Nothing').check();
    await bo.page.keyboard.press('Escape');
    await bo.createRoom('Quiet');
    await astrid.say('unheard');
    const link = bo.page.getByRole('link', { name: /North harbour.*1 unread/ });
    await link.waitFor();
    await expect.poll(() => link.getAttribute('class')).not.toMatch(/\bunread\b/);
    await bo.open('North harbour');
    await bo.page.getByRole('button', { name: 'Room settings' }).click();
    await bo.page.getByLabel('Every message').check();
    await bo.page.keyboard.press('Escape');
  });

  it('tells_when_history_had_to_be_fetched_again', async () => {
    await bo.message('unheard').waitFor();
    await bo.context.setOffline(true);
    await bo.page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    await fillRoom(astrid.page, { count: MISSED, batch: 100 });
    await bo.context.setOffline(false);
    await bo.page.getByText(/Some updates were missed/).waitFor();
    await bo.message(`number ${MISSED - 1} `).waitFor();
    await bo.page.getByRole('status').filter({ hasText: /Some updates were missed/ }).getByRole('button', { name: 'Dismiss' }).click();
    expect(await bo.page.getByText(/Some updates were missed/).count()).toBe(0);
  });

  it('jumps_to_the_message_that_an_answer_quotes_and_to_the_one_an_address_names', async () => {
    await bo.page.goto(`${bo.page.url()}/5`);
    await bo.page.locator('article[data-seq="5"].flash').waitFor();
    await bo.page.getByRole('button', { name: /Jump to latest|new messages/ }).click();
    await bo.message(`number ${MISSED - 1} `).waitFor();
  });

  it('vanishes_from_the_list_of_someone_removed_and_stays_closed_to_someone_banned', async () => {
    const invitation = await astrid.invite();
    await actionsForBo();
    await astrid.page.getByRole('button', { name: 'Remove from room' }).click();
    await confirmed('Remove from room');
    await bo.page.getByText('You were removed from North harbour.').waitFor();
    await bo.page.getByRole('link', { name: /North harbour/ }).waitFor({ state: 'detached' });
    await bo.page.goto(invitation);
    await bo.page.getByRole('button', { name: 'Join room' }).click();
    await bo.composer.waitFor();
    await astrid.page.getByText('2 members').waitFor();
    await actionsForBo();
    await astrid.page.getByRole('button', { name: 'Ban', exact: true }).click();
    await confirmed('Ban');
    await bo.page.getByText('You were banned from North harbour.').waitFor();
    await bo.page.getByRole('link', { name: /North harbour/ }).waitFor({ state: 'detached' });
    await bo.page.goto(invitation);
    await bo.page.getByRole('button', { name: 'Join room' }).click();
    await bo.page.getByRole('alert').filter({ hasText: 'That did not work' }).waitFor();
    await bo.page.getByRole('button', { name: 'Cancel' }).click();
  });

  it('closes_an_invitation_that_was_revoked', async () => {
    await astrid.page.getByRole('button', { name: 'Invite people' }).click();
    await astrid.page.getByRole('button', { name: 'Create link' }).click();
    const link = await astrid.page.getByLabel('Invitation link').inputValue();
    const code = link.split('/').at(-1) ?? '';
    await astrid.page.getByRole('listitem').filter({ hasText: code }).getByRole('button', { name: 'Revoke' }).click();
    await astrid.page.getByRole('listitem').filter({ hasText: code }).waitFor({ state: 'detached' });
    await astrid.page.keyboard.press('Escape');
    await bo.page.goto(link);
    await bo.page.getByText('This invitation has expired, was used up or was revoked.').waitFor();
    await bo.page.getByRole('button', { name: 'Cancel' }).click();
  });

  it('can_be_left', async () => {
    await bo.open('Quiet');
    await bo.page.getByRole('button', { name: 'Room settings' }).click();
    await bo.page.getByRole('button', { name: 'Leave room' }).click();
    await bo.page.getByText(/Leave “Quiet”/).waitFor();
    await bo.page.getByRole('button', { name: 'Leave room' }).click();
    await bo.page.getByRole('link', { name: /Quiet/ }).waitFor({ state: 'detached' });
  });
});

describe('an account', () => {
  it('changes_its_display_name_on_everything_it_wrote', async () => {
    await astrid.page.getByRole('button', { name: /^Account:/ }).click();
    await astrid.page.getByLabel('Display name').fill('Captain Holm');
    await astrid.page.getByRole('button', { name: 'Save' }).click();
    await astrid.page.getByRole('button', { name: 'Saved' }).waitFor();
    await astrid.page.keyboard.press('Escape');
    await astrid.say('under a new name');
    await astrid.message('under a new name').waitFor();
    await astrid.page.getByRole('button', { name: /Account: Captain Holm/ }).waitFor();
    await expect.poll(() => astrid.page.locator('article .name', { hasText: 'Astrid Holm' }).count()).toBe(0);
  });

  it('signs_another_device_out_and_that_device_says_why', async () => {
    const other = await Person.arrive(browser, 'astrid');
    await other.signIn(server.url);
    await other.page.getByRole('link', { name: /North harbour/ }).waitFor();
    await astrid.page.getByRole('button', { name: /^Account:/ }).click();
    await astrid.page.getByRole('dialog').getByRole('listitem').getByRole('button', { name: 'Sign out' }).click();
    await other.page.getByText('You were signed out').waitFor();
    await astrid.page.keyboard.press('Escape');
    await other.context.close();
  });

  it('keeps_language_and_theme_through_a_reload', async () => {
    await astrid.page.getByRole('button', { name: /^Account:/ }).click();
    await astrid.page.getByRole('button', { name: 'Dark' }).click();
    await astrid.page.getByRole('button', { name: 'Deutsch' }).click();
    await astrid.page.reload();
    await astrid.page.getByRole('heading', { name: 'Räume' }).waitFor();
    await expect.poll(() => astrid.page.evaluate(() => [document.documentElement.lang, getComputedStyle(document.body).backgroundColor])).toEqual(['de', 'rgb(25, 28, 26)']);
  });

  it('is_told_what_is_wrong_with_a_name_that_is_taken_and_a_password_that_does_not_fit', async () => {
    const guest = await Person.arrive(browser, 'guest');
    await guest.signIn(server.url, 'astrid', 'not the password');
    await guest.page.getByRole('alert').filter({ hasText: /password/ }).waitFor();
    await guest.page.getByRole('button', { name: 'Create account' }).click();
    await guest.page.getByRole('button', { name: 'Create account' }).click();
    await guest.page.getByRole('alert').filter({ hasText: /taken|name/ }).waitFor();
    await guest.context.close();
  });

  it('leaves_nothing_readable_behind_when_it_signs_out', async () => {
    await bo.page.getByRole('button', { name: /^Account:/ }).click();
    await bo.page.getByRole('button', { name: 'Sign out' }).click();
    await bo.page.getByText('Welcome back').waitFor();
    await expect.poll(() => bo.page.evaluate(() => localStorage.getItem('folkmoot.session'))).toBeNull();
    await expect.poll(() => archivedRooms(bo)).toEqual([]);
    expect([...astrid.errors, ...bo.errors].filter((error) => !/40[0-9]/.test(error))).toEqual([]);
  });
});
