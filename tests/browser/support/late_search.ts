//! An answer to a search that comes late and says no, after that to what was typed next.

import type { Person } from './person';

interface Line {
  id?: number;
  rpc?: { method?: string; data?: { query?: string } };
}

export interface LateSearch {
  /** The server has answered, and the answer is kept from the page. */
  isHeld: Promise<void>;
  /** The page gets an error instead, and has drawn what it makes of it. */
  refuse(): Promise<void>;
}

/** To be called before the page is opened. */
export async function delaySearch({ page }: Person, query: string): Promise<LateSearch> {
  let held = () => undefined as void;
  let send = (_line: string) => undefined as void;
  let late: number | undefined;
  const isHeld = new Promise<void>((resolve) => (held = resolve));
  await page.routeWebSocket(/\/connection\/websocket/, (socket) => {
    const server = socket.connectToServer();
    send = (line) => socket.send(line);
    socket.onMessage((message) => {
      for (const line of String(message).split('\n')) {
        const { id, rpc } = JSON.parse(line) as Line;
        if (rpc?.method === 'search' && rpc.data?.query?.startsWith(query)) late ??= id;
        server.send(line);
      }
    });
    server.onMessage((message) => {
      for (const line of String(message).split('\n')) {
        if (late !== undefined && (JSON.parse(line) as Line).id === late) held();
        else socket.send(line);
      }
    });
  });
  const refuse = async () => {
    send(JSON.stringify({ id: late, error: { code: 100, message: 'busy', temporary: true } }));
    // Other connections of this page count their questions anew.
    late = -1;
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  };
  return { isHeld, refuse };
}
