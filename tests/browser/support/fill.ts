//! Many messages quickly: the page's own session sends them over a plain socket in batches, each waiting for its replies.

import type { Page } from 'playwright-core';

export interface Fill {
  count: number;
  /** Messages per frame; a frame holds 64 KiB. */
  batch: number;
  /** Pace of the batches; as fast as they are acknowledged where absent. */
  everyMs?: number;
}

/** Sends into the room that is open in the page. */
export async function fillRoom(page: Page, { count, batch, everyMs = 0 }: Fill): Promise<void> {
  await page.evaluate(
    async ([total, perFrame, pace]) => {
      const words = 'the tide comes in over the old harbour wall while boats swing at anchor and gulls argue about bread'.split(' ');
      const session = JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { token: string };
      const room = location.pathname.split('/')[2];
      const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/connection/websocket`);
      await new Promise((resolve) => socket.addEventListener('open', resolve));
      const run = Math.random().toString(36).slice(2);
      let id = 1;
      const exchange = (commands: object[]) =>
        new Promise<void>((resolve, reject) => {
          const open = new Set(commands.map((command) => (command as { id: number }).id));
          const read = (event: MessageEvent<string>) => {
            for (const line of event.data.split('\n')) {
              const reply = JSON.parse(line) as { id?: number; error?: { message: string } };
              if (reply.error) reject(new Error(reply.error.message));
              if (reply.id !== undefined) open.delete(reply.id);
            }
            if (open.size > 0) return;
            socket.removeEventListener('message', read);
            resolve();
          };
          socket.addEventListener('message', read);
          socket.send(commands.map((command) => JSON.stringify(command)).join('\n'));
        });
      await exchange([{ id: id++, connect: { token: session.token } }]);
      for (let sent = 0; sent < total; sent += perFrame) {
        const begin = performance.now();
        const commands = Array.from({ length: Math.min(perFrame, total - sent) }, (_, index) => {
          const number = sent + index;
          const body = `number ${number} ${words.slice(0, 3 + (number % 14)).join(' ')}${number % 40 === 0 ? `\n\n- one\n- **two**\n\n${words.join(' ')}` : ''}`;
          return { id: id++, rpc: { method: 'message.send', data: { room, key: `${run}-${number}`, body } } };
        });
        await exchange(commands);
        const rest = pace - (performance.now() - begin);
        if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
      }
      socket.close();
    },
    [count, batch, everyMs] as const,
  );
}
