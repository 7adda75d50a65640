//! Hostile text in every place that shows text of others: nothing of it runs, and nothing leaves the allowed vocabulary.

import { beforeAll, describe, expect, it } from 'vitest';

import { Person } from './support/person';
import { browser, server, withServer } from './support/scene';
import { XSS_CORPUS, XSS_REFUSED } from './support/xss_corpus';

const EVENT_ATTRIBUTES = /^on/i;
const ELEMENTS_ALLOWED = new Set([
  'P', 'BR', 'STRONG', 'EM', 'DEL', 'CODE', 'PRE', 'A', 'UL', 'OL', 'LI', 'BLOCKQUOTE', 'HR', 'SPAN', 'TABLE', 'THEAD', 'TBODY',
  'TR', 'TH', 'TD',
]);

let attacker: Person;
let victim: Person;
const fired: string[] = [];

withServer();
/** As much as fits beside a name. */
const STATUS_CORPUS = XSS_CORPUS.filter((payload) => payload.length <= 80 && !/[\n\t\f\u0000-\u001f"\\]/.test(payload) && payload.trim() === payload).slice(0, 6);

beforeAll(async () => {
  attacker = await Person.arrive(browser, 'mallory');
  victim = await Person.arrive(browser, 'victim');
  await victim.context.exposeFunction('boom', () => fired.push(victim.page.url()));
  victim.page.on('dialog', (dialog) => {
    fired.push(dialog.message());
    void dialog.dismiss();
  });
  await attacker.signUp(server.url, `<img src=x onerror=boom()>`);
  await attacker.createRoom(`<svg onload=boom()>`, `"><script>boom()</script>`);
  await victim.joinBy(await attacker.invite(), `<b onmouseover=boom()>Victim`);
});

describe('hostile text', () => {
  it('comes_in_at_least_a_hundred_shapes', () => {
    expect(new Set(XSS_CORPUS).size).toBeGreaterThanOrEqual(100);
  });

  it('never_runs_in_messages_quotes_names_or_topics', async () => {
    for (const payload of XSS_CORPUS) await attacker.say(payload);
    await attacker.allSent();
    await attacker.say('that was all');
    await victim.message('that was all').waitFor();
    const shown = await victim.everything();
    expect(shown).toHaveLength(XSS_CORPUS.length + 1);
    expect(fired).toEqual([]);
  });

  it('is_kept_back_with_the_reason_when_the_server_refuses_it', async () => {
    for (const payload of XSS_REFUSED) {
      await attacker.say(payload);
      await attacker.page.getByText('Not sent: body must not contain').waitFor();
      await attacker.page.getByRole('button', { name: 'Discard' }).click();
    }
    await attacker.allSent();
    expect(attacker.errors).toEqual([]);
  });

  it('leaves_only_the_allowed_elements_without_event_attributes_or_strange_links', async () => {
    const found = new Set<string>();
    const feed = victim.page.getByRole('feed');
    await feed.evaluate((element) => element.scrollTo(0, 0));
    for (let last = -1, top = 0; top !== last; ) {
      last = top;
      for (const item of await victim.page.locator('.body').evaluateAll(describeElements)) found.add(item);
      top = await feed.evaluate((element) => {
        element.scrollBy(0, element.clientHeight);
        return element.scrollTop;
      });
      await victim.page.waitForFunction(() => document.querySelector('[role=feed]')?.getAttribute('aria-busy') === 'false');
    }
    const items = [...found].map((item) => JSON.parse(item) as { tag: string; attributes: [string, string][] });
    expect(items.map(({ tag }) => tag).filter((tag) => !ELEMENTS_ALLOWED.has(tag))).toEqual([]);
    const attributes = items.flatMap(({ attributes: each }) => each);
    expect(attributes.filter(([name]) => EVENT_ATTRIBUTES.test(name) || name === 'style' || name === 'src')).toEqual([]);
    expect(attributes.filter(([name, value]) => name === 'href' && !/^(https?:|mailto:)/.test(value))).toEqual([]);
  });

  it('opens_links_without_handing_over_the_page', async () => {
    await attacker.say('see https://example.org/here');
    const link = victim.message('example.org/here').getByRole('link');
    expect(await link.getAttribute('rel')).toContain('noopener');
    expect(await link.getAttribute('target')).toBe('_blank');
  });

  it('is_plain_text_in_every_dialog_and_panel_that_shows_it', async () => {
    const { page } = victim;
    await page.getByRole('button', { name: 'Members' }).click();
    await page.getByText('@mallory').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Account:/ }).click();
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    expect(fired).toEqual([]);
    expect(victim.errors).toEqual([]);
  });

  it('is_plain_text_in_the_directory', async () => {
    await attacker.page.getByRole('button', { name: 'Room settings' }).click();
    await attacker.page.getByRole('radio', { name: 'Open' }).check();
    await attacker.page.getByText('Saved', { exact: true }).waitFor();
    await attacker.page.keyboard.press('Escape');
    const { page } = victim;
    await page.getByRole('button', { name: 'Find a room' }).click();
    const dialog = page.getByRole('dialog', { name: 'Find a room' });
    await dialog.getByText('<svg onload=boom()>', { exact: true }).waitFor();
    await dialog.getByText('"><script>boom()</script>', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    expect(fired).toEqual([]);
    expect(victim.errors).toEqual([]);
  });

  it('is_plain_text_in_cards_the_inbox_a_forwarded_message_reactions_and_lines_of_coming_and_going', async () => {
    const { page } = victim;
    // A name stands above what is said after somebody else.
    await victim.say('I am here');
    await victim.allSent();
    await attacker.say('and so am I');
    await victim.message('and so am I').locator('.name').click();
    await page.getByRole('dialog', { name: /^Profile of/ }).getByText('@mallory').waitFor();
    await page.keyboard.press('Escape');
    await attacker.act('example.org/here', 'React');
    await attacker.page.getByRole('dialog', { name: 'Emoji' }).getByRole('button', { name: '🎉' }).click();
    const reaction = victim.message('example.org/here').getByRole('button', { name: /🎉/ });
    await reaction.hover();
    await page.getByRole('tooltip').waitFor();
    await victim.act('example.org/here', 'Forward');
    await page.getByRole('dialog').getByRole('button', { name: /svg onload/ }).click();
    await page.locator('[data-toast]').getByText('svg onload').waitFor();
    const newcomer = await Person.arrive(browser, 'newcomer');
    await newcomer.joinBy(await attacker.invite(), '"><img src=x onerror=boom()>');
    await page.getByText(/onerror=boom\(\)> joined/).waitFor();
    await newcomer.context.close();
    await page.keyboard.press('Alt+i');
    await page.getByRole('heading', { name: 'Inbox' }).waitFor();
    await attacker.say('<img src=x onerror=boom()> for the inbox');
    await page.locator('[data-row]').getByText('for the inbox').waitFor();
    await page.goBack();
    await attacker.act('for the inbox', 'Pin for everybody');
    await victim.act('for the inbox', 'Save for later');
    await page.getByText(/pinned a message$/).waitFor();
    await page.keyboard.press('Alt+p');
    await page.getByRole('complementary', { name: 'Pinned messages' }).getByText('for the inbox').waitFor();
    await page.keyboard.press('Alt+p');
    await page.getByRole('link', { name: 'Saved messages' }).click();
    await page.getByRole('main').getByRole('list', { name: 'Saved messages' }).getByText('for the inbox').waitFor();
    await page.goBack();
    expect(fired).toEqual([]);
    expect(victim.errors).toEqual([]);
  });

  it('is_plain_text_in_what_people_are_up_to', async () => {
    const { page } = victim;
    await page.getByRole('button', { name: 'Members' }).click();
    const dialog = attacker.page.getByRole('dialog', { name: 'Account' });
    for (const payload of STATUS_CORPUS) {
      await attacker.page.getByRole('button', { name: /^Account:/ }).click();
      await dialog.getByLabel('Status', { exact: true }).fill(payload);
      await dialog.getByRole('button', { name: 'Set', exact: true }).click();
      await dialog.getByRole('button', { name: 'Clear' }).waitFor();
      await attacker.page.keyboard.press('Escape');
      await page.locator(`[data-status][title=${JSON.stringify(payload)}]`).first().waitFor();
    }
    await victim.message('and so am I').locator('.name').click();
    await page.getByRole('dialog', { name: /^Profile of/ }).getByText(STATUS_CORPUS.at(-1) ?? '').waitFor();
    await page.keyboard.press('Escape');
    expect(fired).toEqual([]);
    expect(victim.errors).toEqual([]);
  });

  it('meets_a_policy_that_would_refuse_it_anyway', async () => {
    const response = await victim.page.request.get(server.url);
    const policy = response.headers()['content-security-policy'] ?? '';
    expect(policy).toMatch(/script-src 'self'(;|$)/);
    expect(policy).not.toContain('unsafe');
  });
});

/** Runs in the page: every element under the bodies with its attributes, as text so that equal ones fold. */
function describeElements(bodies: Element[]): string[] {
  return bodies.flatMap((body) =>
    // The bar over code is ours: its words are set as text.
    [...body.querySelectorAll('*')].filter((element) => !element.closest('.code-bar')).map((element) =>
      JSON.stringify({ tag: element.tagName, attributes: [...element.attributes].map(({ name, value }) => [name, value]) }),
    ),
  );
}
