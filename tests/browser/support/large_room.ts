//! A room of thousands, for one window: the answers to who is in it are made here, page by page, and may be kept back.

import type { Person } from './person';

interface Line {
  id?: number;
  rpc?: { method?: string; data?: { after?: string; limit?: number; prefix?: string } };
}

export interface LargeRoom {
  /** How often the first page was asked for. */
  asked(): number;
  /** From now on pages behind the first wait. */
  hold(): void;
  release(): void;
  /** From now on the server is too busy to say who is in the room, or is not any more. */
  refuse(on: boolean): void;
}

const nameOf = (index: number) => `person${String(index).padStart(5, '0')}`;

/** To be called before the page is opened. */
export async function fillWithMembers({ page }: Person, count: number): Promise<LargeRoom> {
  let firsts = 0;
  let held: (() => void)[] | undefined;
  let isBusy = false;
  const members = Array.from({ length: count }, (_, index) => ({
    user: `u${index}`, name: nameOf(index), display_name: `Person ${index}`, role: 'member', online: index % 2 === 0,
  }));
  await page.routeWebSocket(/\/connection\/websocket/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => {
      for (const line of String(message).split('\n')) {
        const { id, rpc } = JSON.parse(line) as Line;
        if (rpc?.method !== 'room.members') {
          server.send(line);
          continue;
        }
        const { after, limit = 200, prefix = '' } = rpc.data ?? {};
        const found = members.filter(({ name }) => name.startsWith(prefix));
        const from = found.findIndex(({ user }) => user === after) + 1;
        const part = found.slice(from, from + limit);
        const next = from + limit < found.length ? { next: part.at(-1)?.user } : {};
        const reply = isBusy ? { error: { code: 111, message: 'too many requests', temporary: true } } : { rpc: { data: { members: part, ...next } } };
        const answer = () => socket.send(JSON.stringify({ id, ...reply }));
        if (after === undefined) firsts += 1;
        if (held && after !== undefined) held.push(answer);
        else setTimeout(answer, 50);
      }
    });
    server.onMessage((message) => socket.send(message));
  });
  return {
    asked: () => firsts,
    refuse: (on) => (isBusy = on),
    hold: () => (held = []),
    release: () => {
      const answers = held ?? [];
      held = undefined;
      for (const answer of answers) answer();
    },
  };
}
