//! Every screen of the client to look at, on a desk and on a phone, light, dark and from right to left. Only on request:
//! SCREENS=folder. Nothing is promised here; whoever changes how the client looks sees by it what became of the rest.

import { mkdirSync } from 'node:fs';
import path from 'node:path';

import type { Page } from 'playwright-core';
import { beforeAll, describe, it } from 'vitest';

import { ar } from '../../web/src/i18n/ar';
import { en, type Strings } from '../../web/src/i18n/en';
import { holdConversation } from './support/conversation';
import { Person } from './support/person';
import { harbour, text as textFile } from './support/picture';
import { browser, server, withServer } from './support/scene';

const FOLDER = process.env['SCREENS'] ?? '';
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 1 };
const DESK = { viewport: { width: 1280, height: 800 } };
const LANGUAGES: Record<string, Strings> = { en, ar };
const NAMES = ['astrid', 'bo', 'chidi'] as const;

let link = '';

/** What the page that is walked through looks like. */
interface Look {
  language: 'en' | 'ar';
  device: 'desk' | 'phone';
  theme: 'light' | 'dark' | 'contrast';
}

/** Takes the picture of what one sees; what cannot be brought there is told, and the walk goes on. */
class Walk {
  readonly text: Strings;
  readonly page: Page;
  readonly #look: Look;
  #number = 0;

  constructor(page: Page, look: Look) {
    this.page = page;
    this.#look = look;
    this.text = LANGUAGES[look.language] ?? en;
  }

  get isPhone(): boolean {
    return this.#look.device === 'phone';
  }

  async screen(name: string, lead: () => Promise<unknown>): Promise<void> {
    this.#number += 1;
    const { language, device, theme } = this.#look;
    const file = `${String(this.#number).padStart(2, '0')}-${name}.${device}-${theme}${language === 'en' ? '' : `-${language}`}.png`;
    try {
      await lead();
      await this.page.waitForTimeout(250);
    } catch (failure) {
      console.info(`${file}: ${String(failure).split('\n').slice(0, 3).join(' ')}`);
    }
    await this.page.screenshot({ path: path.join(FOLDER, file), animations: 'disabled' });
  }

  button(name: string | RegExp) {
    return this.page.getByRole('button', { name, exact: typeof name === 'string' }).first();
  }

  /** Back to the room, whatever lies over it. */
  async room(name = 'Harbour'): Promise<void> {
    const { page } = this;
    for (let times = 0; times < 3; times += 1) await page.keyboard.press('Escape');
    if (this.isPhone) await page.goto(server.url);
    await page.getByRole('navigation').getByRole('link', { name }).first().click();
    await page.locator('article[data-seq] .body').first().waitFor();
    await page.waitForTimeout(300);
  }

  message(words: string) {
    return this.page.locator('article[data-seq]').filter({ has: this.page.locator('.body', { hasText: words }) }).last();
  }

  /** What is done with a message: from its toolbar, or from the sheet of a finger that rests. */
  async menuOf(words: string): Promise<void> {
    await this.message(words).scrollIntoViewIfNeeded();
    if (this.isPhone) {
      const box = await this.message(words).locator('.body').boundingBox();
      const devtools = await this.page.context().newCDPSession(this.page);
      const touchPoints = [{ x: (box?.x ?? 0) + 20, y: (box?.y ?? 0) + 8 }];
      await devtools.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints });
      await this.page.waitForTimeout(700);
      await devtools.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
    } else {
      await this.message(words).hover();
      await this.message(words).getByRole('button', { name: this.text.more, exact: true }).click();
    }
    await this.page.getByRole('menu').waitFor();
  }
}

async function walkThrough(walk: Walk): Promise<void> {
  const { page, text } = walk;
  const dialog = page.getByRole('dialog');
  await page.goto(server.url);
  await page.getByRole('navigation').getByRole('link', { name: 'Harbour' }).first().waitFor();
  await walk.screen('list', () => page.goto(server.url));
  await walk.screen('room', () => walk.room());
  await walk.screen('room-above', () => page.getByRole('feed').evaluate((feed) => feed.scrollTo(0, 0)));
  await walk.screen('demo-room', () => walk.room('Code corner'));
  await walk.screen('demo-lists', () => walk.room('Town square'));
  await walk.screen('demo-kitchen', () => walk.room('Küche'));
  await walk.screen('direct', () => walk.room('Mira'));
  await walk.room();
  if (!walk.isPhone) await walk.screen('hover', () => walk.message('Fine. But then').hover());
  await walk.screen('menu', () => walk.menuOf('Fine. But then'));
  await walk.room();
  await walk.screen('reply', async () => {
    await walk.menuOf('the tides of the month');
    await page.getByRole('menuitem', { name: text.reply, exact: true }).click();
  });
  // A phone has emoji on its own keyboard.
  if (!walk.isPhone) {
    await walk.screen('emoji', async () => {
      await page.locator('form.composer').getByRole('button', { name: text.emoji, exact: true }).click();
      await dialog.first().waitFor();
    });
    await page.keyboard.press('Escape');
  }
  await walk.screen('writing', async () => {
    if (await page.locator('.answering button').count()) await page.locator('.answering button').first().click();
    const chooser = page.waitForEvent('filechooser');
    await page.locator('form.composer button').filter({ has: page.locator('svg') }).first().click();
    await (await chooser).setFiles([harbour('sunrise-over-the-north-berth.png', 300, 200), textFile('tides.csv', 'a,b\n'.repeat(80))]);
    await page.locator('#composer').fill('Two files, **bold** words\nand a second line');
    await walk.button(text.formatting).click();
  });
  await page.locator('[data-file] .icon-button').first().click();
  await page.locator('[data-file] .icon-button').first().click();
  await walk.button(text.formatting).click();
  await page.locator('#composer').fill('');
  await walk.screen('mention', async () => {
    await page.locator('#composer').focus();
    await page.keyboard.type('@');
    await page.locator('#completions').waitFor();
  });
  await page.keyboard.press('Escape');
  await page.locator('#composer').fill('');
  await walk.screen('edit', async () => {
    await walk.menuOf('Fine. But then');
    await page.getByRole('menuitem', { name: text.edit, exact: true }).click({ timeout: 3000 });
  });
  await walk.room();
  await walk.screen('thread', async () => {
    await page.locator('article[data-seq]').getByTitle(text.show_thread).first().click();
    await page.locator('[data-thread-seq]').nth(1).waitFor();
  });
  await walk.room();
  await walk.screen('members', async () => {
    await page.getByRole('group', { name: text.room_actions }).getByRole('button', { name: new RegExp(`^${text.members}`) }).click();
    await page.getByText('@chidi').waitFor();
    await page.getByRole('complementary').getByRole('button', { name: text.actions_for('Bo Lind') }).click();
  });
  await walk.room();
  await walk.screen('pins', () => page.getByRole('button', { name: text.is_pinned, exact: true }).first().click());
  await walk.room();
  await walk.screen('search-begin', () => page.getByRole('group', { name: text.room_actions }).getByRole('button', { name: text.search }).click());
  await walk.screen('search', async () => {
    await page.getByRole('searchbox').fill('the');
    await page.locator('[data-hit]').first().waitFor();
  });
  await walk.screen('search-none', async () => {
    await page.getByRole('searchbox').fill('compost');
    await page.locator('[data-hit]').first().waitFor({ state: 'detached' });
    await page.waitForTimeout(500);
  });
  await walk.room();
  await walk.screen('card', async () => {
    await walk.message('the tides of the month').locator('.byline .name').click();
    await dialog.waitFor();
  });
  await page.keyboard.press('Escape');
  await walk.screen('picture', () => walk.message('The north berth').locator('img').click());
  await page.keyboard.press('Escape');
  await walk.screen('invite', () => page.getByRole('group', { name: text.room_actions }).getByRole('button', { name: text.invite_people }).click());
  await page.keyboard.press('Escape');
  await walk.screen('room-settings', () => page.getByRole('group', { name: text.room_actions }).getByRole('button', { name: text.room_settings }).click());
  await page.keyboard.press('Escape');
  await walk.screen('forward', async () => {
    await walk.menuOf('Fine. But then');
    await page.getByRole('menuitem', { name: text.forward, exact: true }).click();
    await dialog.waitFor();
  });
  await page.keyboard.press('Escape');
  await walk.screen('delete', async () => {
    await walk.menuOf('Fine. But then');
    await page.getByRole('menuitem', { name: text.delete, exact: true }).click({ timeout: 3000 });
    await walk.button(text.undo).waitFor();
  });
  await walk.button(text.undo).click();
  await page.keyboard.press('Escape');
  if (walk.isPhone) await page.goto(server.url);
  await walk.screen('switcher', () => page.locator('button.jump').click());
  await walk.screen('switcher-words', () => page.keyboard.type('tide'));
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  const nav = page.getByRole('navigation');
  await walk.screen('room-menu', async () => {
    await nav.getByRole('link', { name: 'Harbour' }).first().click({ button: 'right' });
    await page.getByRole('menu').waitFor();
  });
  await page.keyboard.press('Escape');
  await walk.screen('create-room', () => nav.getByRole('button', { name: text.create_room }).click());
  await page.keyboard.press('Escape');
  await walk.screen('directory', async () => {
    await nav.getByRole('button', { name: text.directory }).click();
    await dialog.waitFor();
  });
  await page.keyboard.press('Escape');
  await walk.screen('new-direct', async () => {
    await nav.getByRole('button', { name: text.new_direct }).click();
    await dialog.getByRole('textbox').or(dialog.getByRole('searchbox')).first().fill('a');
  });
  await page.keyboard.press('Escape');
  await walk.screen('account', () => walk.button(new RegExp(`^${text.account}:`)).click());
  const part = (name: string) => dialog.getByRole('region', { name, exact: true }).scrollIntoViewIfNeeded();
  await walk.screen('account-appearance', () => part(text.preferences));
  await walk.screen('account-security', () => part(text.security));
  await page.keyboard.press('Escape');
  if (!walk.isPhone) await walk.screen('shortcuts', () => page.keyboard.press('?'));
  await page.keyboard.press('Escape');
  await walk.screen('inbox', () => page.goto(`${server.url}/inbox`).then(() => page.getByRole('heading', { name: text.inbox, level: 1 }).waitFor()));
  await walk.screen('inbox-empty', async () => {
    await walk.button(text.mark_all_read).click({ timeout: 3000 });
    await page.getByText(text.inbox_empty).first().waitFor();
  });
  await walk.screen('saved', () => page.goto(`${server.url}/saved`).then(() => page.getByRole('heading', { name: text.saved_messages, level: 1 }).waitFor()));
  await walk.screen('empty-room', async () => {
    await page.goto(server.url);
    await nav.getByRole('link', { name: 'Boat share' }).first().click();
    await page.getByRole('heading', { name: 'Boat share', level: 1 }).waitFor();
  });
  await walk.screen('lost', () => page.goto(`${server.url}/room/9999999`));
  await walk.screen('admin', async () => {
    await page.goto(`${server.url}/admin`);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await page.waitForTimeout(1500);
  });
  for (const tab of ['users', 'rooms', 'settings', 'storage', 'log']) {
    await walk.screen(`admin-${tab}`, async () => {
      await page.goto(`${server.url}/admin/${tab}`);
      await page.waitForTimeout(500);
    });
  }
}

async function outside(walk: Walk): Promise<void> {
  const { page } = walk;
  await walk.screen('first-visit', () => page.goto(server.url).then(() => page.locator('#name, input').first().waitFor()));
  await walk.screen('wrong-password', async () => {
    await walk.button(walk.text.sign_in).click();
    await page.getByLabel(walk.text.user_name).fill('astrid');
    await page.getByLabel(walk.text.password, { exact: true }).fill('not the password');
    await walk.button(walk.text.sign_in).click();
    await page.getByRole('alert').first().waitFor();
  });
  await walk.screen('invited', () => page.goto(link).then(() => page.getByRole('heading', { level: 1 }).waitFor()));
}

describe.runIf(FOLDER !== '')('screens', () => {
  withServer('--demo');
  let storage: Awaited<ReturnType<Person['context']['storageState']>>;

  beforeAll(async () => {
    mkdirSync(FOLDER, { recursive: true });
    const [astrid, bo, chidi] = await Promise.all(NAMES.map((name) => Person.arrive(browser, name)));
    if (!astrid || !bo || !chidi) throw new Error('nobody came');
    const setup = await server.setupLink();
    await astrid.page.goto(setup);
    await new Walk(astrid.page, { language: 'en', device: 'desk', theme: 'light' }).screen('setup', () => astrid.page.getByRole('heading', { level: 1 }).waitFor());
    await astrid.setUp(setup, 'Astrid Holm');
    for (const name of ['Announcements', 'Boat share']) await astrid.createRoom(name);
    await astrid.createRoom('Harbour', 'Boats, tides and who brings the coffee');
    link = await astrid.invite();
    await bo.joinBy(link, 'Bo Lind');
    await chidi.joinBy(link, 'Chidi Okafor');
    await holdConversation({ astrid, bo, chidi });
    await bo.say('مرحبًا جميعًا! القارب جاهز و`tide.json` محدّث.');
    await bo.allSent();
    await astrid.act('machine-readable', 'Pin for everybody');
    await astrid.act('who brings the coffee', 'Save for later');
    await bo.page.getByRole('link', { name: 'Town square' }).click();
    await bo.say('hello, @astrid, is anybody here?');
    await bo.allSent();
    storage = await astrid.context.storageState();
    for (const person of [astrid, bo, chidi]) await person.context.close();
  });

  const looks: Look[] = [
    { language: 'en', device: 'desk', theme: 'light' },
    { language: 'en', device: 'phone', theme: 'light' },
    { language: 'ar', device: 'desk', theme: 'light' },
    { language: 'ar', device: 'phone', theme: 'light' },
    { language: 'en', device: 'desk', theme: 'dark' },
    { language: 'en', device: 'phone', theme: 'dark' },
    { language: 'en', device: 'desk', theme: 'contrast' },
  ];

  const wanted = process.env['LOOKS']?.split(',');
  it.each(looks.filter(({ language, device, theme }) => !wanted || wanted.includes(`${device}-${theme}-${language}`)))('$device $theme $language', async (look) => {
    const { language, device, theme } = look;
    const colorScheme = theme === 'dark' ? 'dark' : 'light';
    const options = { ...(device === 'phone' ? PHONE : DESK), locale: language === 'ar' ? 'ar-EG' : 'en-GB', colorScheme } as const;
    const prepare = async (page: Page) => {
      await page.addInitScript(([spoken, chosen]) => {
        localStorage.setItem('folkmoot.preference.language', JSON.stringify(spoken));
        if (chosen === 'contrast') localStorage.setItem('folkmoot.preference.theme', JSON.stringify('contrast'));
      }, [language, theme] as const);
      page.setDefaultTimeout(8_000);
      return page;
    };
    const context = await browser.newContext({ ...options, storageState: storage });
    await walkThrough(new Walk(await prepare(await context.newPage()), look));
    const stranger = await browser.newContext(options);
    await outside(new Walk(await prepare(await stranger.newPage()), look));
    const down = new Walk(await prepare(await context.newPage()), { ...look });
    await down.page.goto(server.url);
    await down.room();
    await server.kill();
    await down.screen('down', async () => {
      await down.page.locator('#composer').fill('Written while the server is away.');
      await down.page.keyboard.press('Control+Enter');
      await down.page.locator('.pill').waitFor();
    });
    const fresh = await prepare(await stranger.newPage());
    await new Walk(fresh, look).screen('down-first-visit', () => fresh.goto(server.url));
    await server.run();
    await context.close();
    await stranger.close();
  }, 600_000);
});
