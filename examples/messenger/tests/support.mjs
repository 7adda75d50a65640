// The messenger as `./run` starts it, on a free port with data of its own, and people who use it in Debian's Chromium.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

const RUN = path.resolve(import.meta.dirname, '../run');
const PASSWORD = 'correct horse battery';

export class Messenger {
  /** Process ids of the relays, the latest last. */
  relays = [];
  #waiting = [];

  static async start(mode) {
    const messenger = new Messenger();
    messenger.data = await mkdtemp(path.join(tmpdir(), 'messenger-'));
    messenger.process = spawn(RUN, ['--mode', mode, '--port', '0', '--data', messenger.data], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve, reject) => {
      messenger.process.once('exit', (code) => reject(new Error(`the messenger ended with ${code}`)));
      createInterface(messenger.process.stdout).on('line', (line) => {
        const relay = line.match(/process id (\d+)/)?.[1];
        if (relay) messenger.#began(Number(relay));
        messenger.url = line.match(/is at (http:\S+),/)?.[1] ?? messenger.url;
        if (messenger.url) resolve();
      });
    });
    return messenger;
  }

  #began(relay) {
    this.relays.push(relay);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Kills the relay without warning; resolves when the next one has been started. */
  async killRelay() {
    const next = new Promise((resolve) => this.#waiting.push(resolve));
    process.kill(this.relays.at(-1), 'SIGKILL');
    await next;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGTERM');
    await ended;
    await rm(this.data, { recursive: true, force: true });
  }
}

export class Person {
  static async arrive(browser, messenger, name) {
    const person = new Person();
    person.context = await browser.newContext();
    const page = (person.page = await person.context.newPage());
    person.errors = [];
    page.on('pageerror', (error) => person.errors.push(error.message));
    await page.goto(messenger.url);
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByText('connected', { exact: true }).waitFor();
    return person;
  }

  async createRoom(name) {
    await this.page.getByLabel('New room').fill(name);
    await this.page.getByRole('button', { name: 'Create room' }).click();
    await this.page.getByRole('heading', { name }).waitFor();
  }

  async join(name) {
    await this.page.getByRole('button', { name: `Join ${name}` }).click();
    await this.page.getByRole('heading', { name }).waitFor();
  }

  async say(text) {
    const field = this.page.getByLabel('Message', { exact: true });
    await field.fill(text);
    await field.press('Enter');
    await this.page.waitForFunction(() => document.querySelector('#new-message input').value === '');
  }

  async hears(text) {
    await this.page.getByLabel('Messages').getByText(text, { exact: true }).waitFor({ timeout: 20_000 });
  }

  /** All that the room shows, as "name text". */
  said() {
    const lines = (items) => items.map((item) => `${item.querySelector('strong').textContent} ${item.querySelector('span').textContent}`);
    return this.page.getByLabel('Messages').locator('li').evaluateAll(lines);
  }
}
