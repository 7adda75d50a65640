//! One person at one browser window, described by what people see: labels, buttons, messages. Everything that a page
//! reports as an error is collected, so that a test can promise that there was none.

import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';

export const PASSWORD = 'correct horse battery';

/** A message as shown: who, what, and its number in the room. */
export interface Shown {
  seq: number;
  text: string;
}

/** Pages compute this many times slower than the machine could: what a test takes for granted then shows. */
const SLOWDOWN = Number(process.env['SLOWDOWN'] ?? '1');

/** How long something is waited for: two pages and two servers may share one slow core. */
const PATIENCE_MS = 60_000;

/** How often a row is pointed at that moves away. */
const ATTEMPTS_MAX = 5;

async function slowDown(context: BrowserContext, page: Page): Promise<void> {
  if (SLOWDOWN <= 1) return;
  const devtools = await context.newCDPSession(page);
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN });
}

/** What is done with a message most, and the rest, which is in its menu. */
type InToolbar = 'React' | 'Reply' | 'Edit';
type InMenu = 'Show thread' | 'Copy text' | 'Copy link' | 'Forward' | 'Save for later' | 'Pin for everybody' | 'Delete';

export class Person {
  readonly name: string;
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of the page: exceptions, refused by policy, failed loads. */
  readonly errors: string[] = [];

  private constructor(name: string, context: BrowserContext, page: Page) {
    this.name = name;
    this.context = context;
    this.page = page;
    page.on('pageerror', (error) => this.errors.push(`exception: ${error.message}`));
    page.on('console', (message) => {
      // A connection that fails while the server is down is expected to be reported by the browser.
      if (message.type() === 'error' && !/WebSocket|net::ERR_/.test(message.text())) this.errors.push(`console: ${message.text()}`);
    });
  }

  static async arrive(browser: Browser, name: string, options: BrowserContextOptions = {}): Promise<Person> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB', ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    await slowDown(context, page);
    return new Person(name, context, page);
  }

  async signUp(url: string, displayName = ''): Promise<void> {
    const { page } = this;
    await page.goto(url);
    await page.getByLabel('User name').fill(this.name);
    if (!(await page.getByLabel('Display name').isVisible())) await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByLabel('Display name').fill(displayName);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();
    // A phone shows the room alone.
    await page.getByRole('button', { name: /^Account:/ }).or(this.composer).first().waitFor();
  }

  /** With an account that is there already, at a browser that may never have been here. */
  async signIn(url: string, name = this.name, password = PASSWORD): Promise<void> {
    const { page } = this;
    await page.goto(url);
    await page.getByLabel('User name').fill(name);
    const toSignIn = page.getByRole('button', { name: 'Sign in', exact: true });
    if (await page.getByLabel('Display name').isVisible()) await toSignIn.click();
    await page.getByLabel('Password', { exact: true }).fill(password);
    await toSignIn.click();
  }

  /** Follows the link that a new server prints. */
  async setUp(link: string, displayName = ''): Promise<void> {
    const { page } = this;
    await page.goto(link);
    await page.getByLabel('User name').fill(this.name);
    await page.getByLabel('Display name').fill(displayName);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create administrator' }).click();
    await page.getByRole('button', { name: /^Account:/ }).waitFor();
  }

  async createRoom(name: string, topic = ''): Promise<void> {
    const { page } = this;
    await page.getByRole('button', { name: 'Create room' }).first().click();
    await page.getByLabel('Room name').fill(name);
    await page.getByLabel('Topic').fill(topic);
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    // There is a composer already, of the room behind the dialog: what is written too early ends in there.
    await page.getByRole('heading', { name, level: 1, exact: true }).waitFor();
    await this.composer.waitFor();
  }

  /** Makes an invitation to the open room and returns its link. */
  async invite(): Promise<string> {
    const { page } = this;
    await page.getByRole('button', { name: 'Invite people' }).click();
    await page.getByRole('button', { name: 'Create link' }).click();
    const link = await page.getByLabel('Invitation link').inputValue();
    await page.keyboard.press('Escape');
    return link;
  }

  /** Follows an invitation, signing up on the way: that is the answer to it already. */
  async joinBy(link: string, displayName = ''): Promise<void> {
    await this.signUp(link, displayName);
    await this.composer.waitFor();
  }

  get composer(): Locator {
    return this.page.locator('#composer');
  }

  async say(text: string): Promise<void> {
    await this.composer.fill(text);
    // Sends in the middle of a block of code as well, and on a phone.
    await this.composer.press('Control+Enter');
  }

  /** Opens a room by its name in the list. */
  async open(room: string): Promise<void> {
    await this.page.getByRole('link', { name: room }).click();
    await this.page.getByRole('heading', { name: room, level: 1 }).waitFor();
  }

  /** An acknowledged message that holds the text. */
  message(text: string): Locator {
    return this.page.locator('article[data-seq]').filter({ hasText: text }).last();
  }

  async act(text: string, action: InToolbar | InMenu): Promise<void> {
    const isThere = action === 'React' || action === 'Reply' || action === 'Edit';
    const button = this.message(text).getByRole('button', { name: isThere ? action : 'More', exact: true });
    // A message that comes in between moves the row away from under the pointer: then it is pointed at again.
    for (let attempt = 1; ; attempt += 1) {
      await this.message(text).hover();
      const isLast = attempt === ATTEMPTS_MAX;
      const clicked = await button.click({ timeout: isLast ? PATIENCE_MS : PATIENCE_MS / 10 }).then(() => true, (failure: unknown) => {
        if (isLast) throw failure;
        return false;
      });
      if (clicked) break;
    }
    if (!isThere) await this.page.getByRole('menuitem', { name: action, exact: true }).click();
  }

  /** Every acknowledged message, from the first to the last, gathered by scrolling through the room. */
  async everything(): Promise<Shown[]> {
    const found = new Map<number, string>();
    const feed = this.page.getByRole('feed');
    // Up until the room's first message is there: each look may have older pages fetched.
    await this.page.waitForFunction(() => {
      document.querySelector('[role=feed]')?.scrollTo(0, 0);
      return document.querySelector('article[data-seq="1"]') !== null;
    });
    for (;;) {
      await this.page.waitForFunction(() => document.querySelector('[role=feed]')?.getAttribute('aria-busy') === 'false');
      const rows = await this.page.locator('article[data-seq]').evaluateAll((elements) =>
        elements.map((element) => ({ seq: Number(element.getAttribute('data-seq')), text: element.querySelector('.body')?.textContent.trim() ?? '' })),
      );
      for (const { seq, text } of rows) found.set(seq, text);
      // Half a page, then two frames: the list has drawn the rows of one place before the next is asked for.
      const atEnd = await feed.evaluate(async (element) => {
        const before = element.scrollTop;
        element.scrollBy(0, element.clientHeight / 2);
        for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
        // Rows that have just been measured may hold the place still: the end is where nothing is left below, too.
        return element.scrollTop === before && element.scrollTop + element.clientHeight >= element.scrollHeight - 2;
      });
      if (atEnd) break;
    }
    return [...found].sort(([a], [b]) => a - b).map(([seq, text]) => ({ seq, text }));
  }

  /** Waits until nothing is on its way any more. */
  async allSent({ timeout }: { timeout: number } = { timeout: PATIENCE_MS }): Promise<void> {
    await this.page.waitForFunction(() => document.querySelectorAll('[data-pending]').length === 0, undefined, { timeout });
  }

  async isOnline(): Promise<void> {
    await this.page.locator('[data-connection="online"]').waitFor({ state: 'attached', timeout: 60_000 });
  }
}
