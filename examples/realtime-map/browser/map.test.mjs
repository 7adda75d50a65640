// The map in a real browser: it fills, a click shows a vehicle and its trail, themes and filters work, a lost broker shows.
// Needs Debian's chromium and mosquitto, and the built program (`make test-map-browser` does all that).
// With SCREENSHOT=path it also takes the README's picture.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

const PROGRAM = process.env.MAP_PROGRAM ?? `${process.env.CARGO_TARGET_DIR ?? "../../../target"}/debug/realtime-map`;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
const PATIENCE = { timeout: 60_000 };

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
});
after(() => browser?.close());

/** Starts the program; resolves with its address once it says where it is. */
async function startMap(t, ...args) {
  const data = mkdtempSync(join(tmpdir(), "realtime-map-browser-"));
  const child = spawn(PROGRAM, ["--port", "0", "--data", data, ...args], { stdio: ["ignore", "pipe", "ignore"] });
  t.after(async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
    rmSync(data, { recursive: true, force: true });
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^map on (http:\S+)$/.exec(line);
    if (found) return found[1];
  }
  throw new Error(`${PROGRAM} ended without an address`);
}

async function openPage(t, address, scheme = "light") {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: scheme });
  const trouble = [];
  page.on("console", (message) => message.type() === "error" && trouble.push(message.text()));
  page.on("pageerror", (error) => trouble.push(String(error)));
  t.after(() => page.close());
  await page.goto(address);
  return { page, trouble };
}

const shown = (page, least) =>
  page.waitForFunction((n) => Number(document.documentElement.dataset.shown) >= n, least, PATIENCE);

test("the map fills, and a found vehicle shows its card and trail", async (t) => {
  const address = await startMap(t, "--vehicles", "2000");
  const { page, trouble } = await openPage(t, address);
  await shown(page, 1_500);
  assert.equal(await page.locator("h1").textContent(), "Thingvik");
  await page.locator("#operators li").nth(7).waitFor(PATIENCE);
  await page.locator("#feed[data-state=live]").waitFor(PATIENCE);
  await page.locator("#log li").nth(4).waitFor(PATIENCE);

  const broker = await page.locator("#feed").textContent();
  assert.match(broker, /live from mqtt:\/\/127/);
  await page.locator("#find-id").fill("40/7");
  await page.getByRole("button", { name: "Find" }).click();
  await page.locator("#card").waitFor(PATIENCE);
  assert.equal(await page.locator("#card-id").textContent(), "0040/00007");
  await page.waitForFunction(() => /trail of ([5-9]|\d\d)/.test(document.getElementById("card-note").textContent), null, PATIENCE);
  assert.equal(await page.locator("#card-operator").textContent(), "Thingvik Trams · tram");

  if (process.env.SCREENSHOT) await takePicture(page);
  await page.locator("#map").focus();
  await page.keyboard.press("Escape");
  await page.locator("#card").waitFor({ state: "hidden" });
  assert.deepEqual(trouble, []);
});

/** The whole city, one tram chosen. */
async function takePicture(page) {
  // A minute and more of driving, so that there is something to see.
  await page.waitForFunction(() => /trail of (\d\d\d|[2-9]\d|1[5-9])/.test(document.getElementById("card-note").textContent), null, { timeout: 180_000 });
  await page.locator("#map").focus();
  for (const key of ["0", "=", "="]) await page.keyboard.press(key);
  await page.evaluate(() => document.activeElement.blur());
  await shown(page, 900);
  await page.screenshot({ path: process.env.SCREENSHOT });
}

test("a click on the map chooses the vehicle under it", async (t) => {
  const address = await startMap(t, "--vehicles", "2000");
  const { page, trouble } = await openPage(t, address, "dark");
  await shown(page, 1_500);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  // The centre of the city is never empty; a few places around it are tried, as a person would.
  for (const [x, y] of [[560, 500], [530, 480], [600, 470], [500, 520], [620, 540]]) {
    await page.mouse.click(x, y);
    if (await page.locator("#card").isVisible()) break;
    await page.locator("#card").waitFor({ timeout: 500 }).catch(() => {});
    if (await page.locator("#card").isVisible()) break;
  }
  await page.locator("#card").waitFor({ timeout: 1_000 });
  assert.match(await page.locator("#card-id").textContent(), /^\d{4}\/\d{5}$/);

  await page.locator("#theme").click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  const all = Number(await page.evaluate(() => document.documentElement.dataset.shown));
  await page.locator("#legend [data-mode=bus]").click();
  await page.waitForFunction((n) => Number(document.documentElement.dataset.shown) < n / 2, all, PATIENCE);
  assert.deepEqual(trouble, []);
});

test("an unknown vehicle is said to be unknown", async (t) => {
  const { page } = await openPage(t, await startMap(t, "--vehicles", "20"));
  await page.locator("#find-id").fill("1/2");
  await page.getByRole("button", { name: "Find" }).click();
  await page.waitForFunction(() => document.getElementById("find-id").validationMessage.includes("never been heard of"), null, PATIENCE);
});

test("a broker that is not there shows, and the page goes live when it comes", async (t) => {
  const port = await freePort();
  const { page } = await openPage(t, await startMap(t, "--mqtt", `mqtt://127.0.0.1:${port}`));
  await page.locator("#feed[data-state=lost]").waitFor(PATIENCE);
  assert.match(await page.locator("#feed").textContent(), /broker lost, trying again after \d+\.\d s/);
  const broker = spawn("/usr/sbin/mosquitto", ["-p", String(port)], { stdio: "ignore" });
  t.after(() => broker.kill());
  await page.locator("#feed[data-state=live]").waitFor(PATIENCE);
});

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
