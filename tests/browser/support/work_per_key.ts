//! What the page does for each key until it is painted, in time of the processor: neither the wait for a display nor other
//! programs on the machine are in it. Read from Chromium's own trace of the page's main thread.

import type { Browser } from 'playwright-core';

const CATEGORIES = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'];
const US_PER_MS = 1_000;

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** Begin and length by the clock, length by the processor; in microseconds. */
  ts: number;
  dur?: number;
  tdur?: number;
  args?: { data?: { type?: string } };
}

/** For each key that goes down while `act` runs: milliseconds until the frame after it is handed to the display. */
export async function workPerKey(browser: Browser, act: () => Promise<unknown>): Promise<number[]> {
  const devtools = await browser.newBrowserCDPSession();
  const events: TraceEvent[] = [];
  devtools.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  await devtools.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: CATEGORIES } });
  await act();
  const complete = new Promise<void>((resolve) => devtools.once('Tracing.tracingComplete', () => resolve()));
  await devtools.send('Tracing.end');
  await complete;
  await devtools.detach();
  return perKey(events);
}

function perKey(events: readonly TraceEvent[]): number[] {
  const keys = events.filter(({ name, args }) => name === 'EventDispatch' && args?.data?.type === 'keydown');
  const [first] = keys;
  const ours = events.filter(({ pid, tid }) => pid === first?.pid && tid === first.tid);
  const tasks = ours.filter(({ name }) => name === 'RunTask');
  const commits = ours.filter(({ name }) => name === 'Commit').sort((a, b) => a.ts - b.ts);
  return keys.flatMap(({ ts: down }) => {
    const commit = commits.find(({ ts }) => ts > down);
    if (!commit) return [];
    const until = commit.ts + (commit.dur ?? 0);
    // The task that was running when the key went down is one it waited for.
    const between = tasks.filter(({ ts, dur = 0 }) => ts + dur > down && ts < until);
    return [between.reduce((sum, { tdur = 0 }) => sum + tdur, 0) / US_PER_MS];
  });
}
