//! From a key to the picture that shows it, as Chromium itself accounts for it (its `EventLatency` trace): stage by stage, so
//! that waiting for the display's next frame is told apart from what the page does.

import type { Browser } from 'playwright-core';

const CATEGORIES = ['cc', 'benchmark', 'input'];
const US_PER_MS = 1_000;
/** The page has done what the key asked for, and its frame is not due yet: the display's clock has to tick. */
const WAITING = ['RendererMainFinishedToBeginImplFrame', 'BeginImplFrameToSendBeginMainFrame', 'RendererMainFinishedToSendBeginMainFrame'];
/** Without it the picture did not change, or another key's picture was the one that was shown. */
const SHOWN = 'SubmitCompositorFrameToPresentationCompositorFrame';

interface TraceEvent {
  name: string;
  ph: string;
  ts: number;
  pid: number;
  id2?: { local?: string };
  args?: { event_latency?: { event_type?: string } };
}

/** Milliseconds. */
export interface KeyLatency {
  /** From the key to the picture. */
  total: number;
  /** Of that, for the display's next frame. */
  waiting: number;
}

/** For each key that goes down while `act` runs and changes the picture. */
export async function keyLatencies(browser: Browser, act: () => Promise<unknown>): Promise<KeyLatency[]> {
  const devtools = await browser.newBrowserCDPSession();
  const events: TraceEvent[] = [];
  devtools.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  await devtools.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: CATEGORIES } });
  await act();
  const complete = new Promise<void>((resolve) => devtools.once('Tracing.tracingComplete', () => resolve()));
  await devtools.send('Tracing.end');
  await complete;
  await devtools.detach();
  return latencies(events);
}

function latencies(events: readonly TraceEvent[]): KeyLatency[] {
  const found: KeyLatency[] = [];
  /** Begun and not ended, by event; the outermost first. */
  const open = new Map<string, { isKey: boolean; began: { name: string; ts: number }[]; stages: Map<string, number> }>();
  for (const { name, ph, ts, pid, id2, args } of [...events].sort((a, b) => a.ts - b.ts)) {
    const id = id2?.local && `${pid}/${id2.local}`;
    if (!id) continue;
    if (ph === 'b' && name === 'EventLatency') {
      open.set(id, { isKey: args?.event_latency?.event_type === 'KEY_PRESSED', began: [{ name, ts }], stages: new Map() });
      continue;
    }
    const event = open.get(id);
    if (!event) continue;
    if (ph === 'b') event.began.push({ name, ts });
    if (ph !== 'e') continue;
    const begun = event.began.pop();
    if (!begun) continue;
    const ms = (ts - begun.ts) / US_PER_MS;
    if (event.began.length > 0) {
      event.stages.set(begun.name, (event.stages.get(begun.name) ?? 0) + ms);
      continue;
    }
    open.delete(id);
    const { stages } = event;
    const waiting = WAITING.reduce((sum, stage) => sum + (stages.get(stage) ?? 0), 0);
    if (event.isKey && stages.has(SHOWN)) found.push({ total: ms, waiting });
  }
  return found;
}
