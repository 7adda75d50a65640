//! The checker of accessibility, run in a page whose window was opened for it.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import type { Result } from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';

const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SCHEMES = ['light', 'dark'] as const;

/** A window that can be checked: the page's policy refuses injected scripts, as it should, and the checker is one. */
export const CHECKED: BrowserContextOptions = { bypassCSP: true };

/** What axe-core finds in the page as it stands, in both themes, as lines that name the element. */
export async function violations(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    // Colours arrive with the next frames, and a checker between two themes sees a mixture.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await page.evaluate(async () => {
      const running = () => document.getAnimations().filter((it) => it.playState === 'running' && Number.isFinite(Number(it.effect?.getComputedTiming().endTime)));
      // What inherits a colour that fades begins to fade when that has ended.
      for (let all = running(); all.length > 0; all = running()) {
        await Promise.allSettled(all.map((it) => it.finished));
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
    });
    await page.evaluate(AXE);
    const results: Result[] = await page.evaluate(async () => {
      const axe = (window as unknown as { axe: { run(): Promise<{ violations: Result[] }> } }).axe;
      return (await axe.run()).violations;
    });
    for (const { id, nodes } of results) {
      for (const node of nodes) found.push(`${colorScheme} ${id}: ${node.html.slice(0, 160)} ${node.failureSummary ?? ''}`);
    }
  }
  return found;
}
