//! An answer that comes late: a window whose list of rooms was asked for before an invitation was accepted, and arrives after that.
//! Busy servers and slow lines do this by chance; here it happens each time.

import type { Person } from './person';

interface Line {
  id?: number;
  rpc?: { method?: string };
}

const idOf = (line: string) => (JSON.parse(line) as Line).id;

/** To be called before the page is opened. */
export async function delayListUntilAccepted({ page }: Person): Promise<void> {
  await page.routeWebSocket(/\/connection\/websocket/, (socket) => {
    const server = socket.connectToServer();
    const lists = new Set<number>();
    let acceptance: { id: number | undefined; line: string } | undefined;
    let list: string | undefined;
    let isAccepted = false;

    socket.onMessage((message) => {
      for (const line of String(message).split('\n')) {
        const { id, rpc } = JSON.parse(line) as Line;
        if (rpc?.method === 'rooms.list' && id !== undefined) lists.add(id);
        if (rpc?.method !== 'invite.accept') server.send(line);
        else {
          acceptance = { id, line };
          // Not before the server has looked which rooms there are.
          if (list !== undefined) server.send(line);
        }
      }
    });

    server.onMessage((message) => {
      for (const line of String(message).split('\n')) {
        const id = idOf(line);
        if (!isAccepted && id !== undefined && lists.has(id)) {
          list = line;
          if (acceptance) server.send(acceptance.line);
          continue;
        }
        socket.send(line);
        if (acceptance && id === acceptance.id && list !== undefined) {
          isAccepted = true;
          socket.send(list);
        }
      }
    });
  });
}
