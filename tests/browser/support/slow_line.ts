//! A slow line between a browser and the server: each direction passes so many bytes a second, each so much later. Unlike
//! the browser's own throttling it holds for sockets and uploads as well, and what waits on it is held in it.

import { createServer, connect, type Server as Listener, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';

export interface Speed {
  /** Of each direction, shared by all connections. */
  bytesPerSecond: number;
  /** From one end to the other. */
  delayMs: number;
  /** What came first leaves first, as in a modem that holds a long queue; else connections take turns. */
  oneQueue?: boolean;
}

const TICK_MS = 20;

/** What leaves at once, of one connection: they take turns. */
const PACKET_BYTES = 1_460;

/** Of one connection in a queue for all; then its sender waits. */
const WINDOW_BYTES = 16_384;

/** One direction. What a connection has on its way is one piece, or a window full of them where there is one queue for all;
 *  its sender waits for it, and so notices how slow it is. */
class Lane {
  #waiting: { due: number; bytes: Buffer; from: Socket; to: Socket }[] = [];
  readonly #speed: () => Speed;
  #credit = 0;

  constructor(speed: () => Speed) {
    this.#speed = speed;
  }

  carry(from: Socket, to: Socket): void {
    from.on('data', (bytes: Buffer) => {
      const before = this.#waiting.filter((piece) => piece.from === from).reduce((sum, piece) => sum + piece.bytes.length, 0);
      if (this.#speed().oneQueue !== true || before + bytes.length >= WINDOW_BYTES) from.pause();
      this.#waiting.push({ due: performance.now() + this.#speed().delayMs, bytes, from, to });
    });
  }

  tick(): void {
    const share = (this.#speed().bytesPerSecond * TICK_MS) / 1_000;
    this.#credit = Math.min(this.#credit + share, Math.max(share, PACKET_BYTES) * 2);
    for (;;) {
      const next = this.#waiting.findIndex(({ due }) => due <= performance.now());
      const [piece] = next < 0 ? [] : this.#waiting.splice(next, 1);
      if (!piece) return;
      const packet = piece.bytes.subarray(0, PACKET_BYTES);
      if (packet.length > this.#credit) {
        this.#waiting.unshift(piece);
        return;
      }
      this.#credit -= packet.length;
      if (!piece.to.destroyed) piece.to.write(packet);
      if (packet.length === piece.bytes.length || piece.to.destroyed) piece.from.resume();
      else {
        const rest = { ...piece, bytes: piece.bytes.subarray(packet.length) };
        if (this.#speed().oneQueue === true) this.#waiting.unshift(rest);
        else this.#waiting.push(rest);
      }
    }
  }
}

export class SlowLine {
  readonly #listener: Listener;
  readonly #sockets = new Set<Socket>();
  readonly #ticking: NodeJS.Timeout;

  private constructor(listener: Listener, ticking: NodeJS.Timeout) {
    this.#listener = listener;
    this.#ticking = ticking;
  }

  /** Before the server at this address; `speed` is asked again and again. */
  static async before(url: string, speed: () => Speed): Promise<SlowLine> {
    const { hostname, port } = new URL(url);
    const [up, down] = [new Lane(speed), new Lane(speed)];
    const listener = createServer();
    const line = new SlowLine(listener, setInterval(() => [up, down].forEach((lane) => lane.tick()), TICK_MS));
    listener.on('connection', (client) => {
      const server = connect(Number(port), hostname);
      up.carry(client, server);
      down.carry(server, client);
      for (const [one, other] of [[client, server], [server, client]] as const) {
        line.#sockets.add(one);
        one.on('error', () => one.destroy());
        one.on('close', () => {
          line.#sockets.delete(one);
          other.end();
        });
      }
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    return line;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  end(): void {
    clearInterval(this.#ticking);
    for (const socket of this.#sockets) socket.destroy();
    this.#listener.close();
  }
}
