//! Methods of the protocol that no button reaches so quickly: called with the session of a page, over a socket of its own.

import type { Page } from 'playwright-core';

/** A method with its request. */
export type Call = readonly [method: string, data: object];

/** So many in one frame, which holds 64 KiB. */
const BATCH = 100;

/** Calls one after the other; returns the replies in that order. */
export async function call(page: Page, calls: readonly Call[]): Promise<unknown[]> {
  return page.evaluate(async ([all, batch]) => {
    const session = JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { token: string };
    const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/connection/websocket`);
    await new Promise((resolve) => socket.addEventListener('open', resolve));
    const replies = new Map<number, unknown>();
    const exchange = (commands: { id: number }[]) =>
      new Promise<void>((resolve, reject) => {
        const read = (event: MessageEvent<string>) => {
          for (const line of event.data.split('\n')) {
            const reply = JSON.parse(line) as { id?: number; error?: { message: string }; rpc?: { data: unknown } };
            if (reply.error) reject(new Error(reply.error.message));
            if (reply.id !== undefined) replies.set(reply.id, reply.rpc?.data);
          }
          if (!commands.every(({ id }) => replies.has(id))) return;
          socket.removeEventListener('message', read);
          resolve();
        };
        socket.addEventListener('message', read);
        socket.send(commands.map((command) => JSON.stringify(command)).join('\n'));
      });
    await exchange([{ id: 1, connect: { token: session.token } } as { id: number }]);
    for (let from = 0; from < all.length; from += batch) {
      const part = all.slice(from, from + batch);
      await exchange(part.map(([method, data], index) => ({ id: from + index + 2, rpc: { method, data } })));
    }
    socket.close();
    return all.map((_, index) => replies.get(index + 2));
  }, [calls, BATCH] as const);
}

/** The room that is open in the page. */
export function openRoomOf(page: Page): string {
  return new URL(page.url()).pathname.split('/')[2] ?? '';
}
