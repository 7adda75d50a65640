import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Keep, type KeptSession } from '../net/keep';
import { ask, take } from './glimpse';

const SESSION: KeptSession = { token: 'fm_1', user: { id: '7', name: 'ana', display_name: 'Ana' }, device: '1' };

let asked: string[];
let kept: { name: string }[];

beforeEach(() => {
  asked = [];
  kept = [];
  vi.stubGlobal('navigator', { serviceWorker: { controller: {} } });
  vi.stubGlobal('indexedDB', { databases: async () => kept });
  vi.stubGlobal('fetch', async (path: string) => {
    asked.push(path);
    return path.includes('/messages') ? Response.json({ messages: [{ seq: 3 }] }) : Response.json({ id: '42', last_seq: 3 });
  });
});

afterEach(() => vi.unstubAllGlobals());

const keep = () => new Keep(undefined);

describe('what a browser that holds nothing will show', () => {
  it('is_the_room_of_the_address_and_given_once', async () => {
    ask(keep(), SESSION, '/room/42');
    expect(await take()).toEqual({ view: { id: '42', last_seq: 3 }, messages: [{ seq: 3 }] });
    expect(take()).toBeUndefined();
    expect(asked).toEqual(['/api/v1/rooms/42', '/api/v1/rooms/42/messages?limit=50']);
  });

  it('is_not_asked_for_where_something_is_kept_or_no_room_is_meant', async () => {
    kept = [{ name: 'folkmoot.7' }];
    ask(keep(), SESSION, '/room/42');
    expect(await take()).toBeUndefined();
    for (const path of ['/room/42/9', '/inbox', '/']) {
      ask(keep(), SESSION, path);
      expect(take()).toBeUndefined();
    }
    expect(asked).toEqual([]);
  });

  it('is_asked_for_without_a_look_at_what_is_kept_where_no_worker_is', async () => {
    vi.stubGlobal('navigator', { serviceWorker: { controller: null } });
    vi.stubGlobal('indexedDB', { databases: () => new Promise(() => undefined) });
    ask(keep(), SESSION, '/room/42');
    expect((await take())?.view.id).toBe('42');
  });

  it('is_nothing_where_the_server_refuses_or_is_away', async () => {
    vi.stubGlobal('fetch', async () => new Response(undefined, { status: 401 }));
    ask(keep(), SESSION, '/room/42');
    expect(await take()).toBeUndefined();
  });
});
