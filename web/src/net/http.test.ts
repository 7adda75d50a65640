//! Promises of what is asked over HTTP: it ends, also on a line that takes everything and answers nothing.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { setPicture, signIn, signOut, Unreachable } from './http';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Takes the request, and ends only if it is given up. */
const silent = (_path: string, { signal }: RequestInit) =>
  new Promise<Response>((_resolve, reject) => signal?.addEventListener('abort', () => reject(new DOMException('given up', 'AbortError'))));

it.each([
  ['nothing', silent],
  ['its_head_alone', (_path: string, { signal }: RequestInit) => Promise.resolve({
    ok: true, status: 200, json: () => silent('', { signal: signal ?? null }),
  } as unknown as Response)],
])('who_answers_%s_counts_as_not_reached_after_a_while', async (_what, fetch) => {
  vi.stubGlobal('fetch', fetch);
  const failures: unknown[] = [];
  signIn({ name: 'bo', password: 'p', device: 'd' }).catch((failure: unknown) => failures.push(failure));
  signOut('token').catch((failure: unknown) => failures.push(failure));
  await vi.advanceTimersByTimeAsync(29_000);
  expect(failures).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(failures.map((failure) => failure instanceof Unreachable)).toEqual([true, true]);
});

it('a_picture_has_as_long_as_it_takes', async () => {
  vi.stubGlobal('fetch', silent);
  let isOver = false;
  setPicture('token', new Blob(['x'])).catch(() => undefined).finally(() => (isOver = true));
  await vi.advanceTimersByTimeAsync(600_000);
  expect(isOver).toBe(false);
});
