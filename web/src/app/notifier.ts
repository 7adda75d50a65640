//! Notifications of the browser, for messages that the person is not looking at, in any tab, and has not silenced.

import type { RoomEvent } from '../protocol/events';
import type { RoomId, RoomView, UserId } from '../protocol/generated/chat';
import { isLooking } from './looking';

type MessageEvent = Extract<RoomEvent, { type: 'message' }>;

/** Whether a message deserves one: `none` never, `mentions` when named, `all` always; a direct message names its reader. */
export function deserves(event: MessageEvent, view: RoomView, me: UserId): boolean {
  if (event.user === me || view.notify === 'none') return false;
  if (view.kind === 'direct' || view.notify === 'all') return true;
  return event.mentions.includes(me) || event.mention_all === true;
}

/** A message that arrived, as it would be told. */
export interface Arrived {
  event: MessageEvent;
  view: RoomView;
  me: UserId;
  title: string;
  text: string;
  /** Whether the page shows this room. */
  isOpen: boolean;
}

const TEXT_CHARS_MAX = 200;
/** So long another tab has to say that the message is seen there: each hears of it by a connection of its own. */
const OTHERS_MS = 500;
/** More than arrive while one waits. */
const SETTLED_MAX = 500;

export class Notifier {
  readonly #open: (room: RoomId, seq: number) => void;
  /** By it the tabs of this browser tell each other which messages were seen or told. */
  readonly #tabs = new BroadcastChannel('folkmoot.settled');
  readonly #settled = new Set<string>();

  constructor(open: (room: RoomId, seq: number) => void) {
    this.#open = open;
    this.#tabs.onmessage = ({ data }) => this.#settle(String(data));
    navigator.serviceWorker?.addEventListener('message', ({ data }) => {
      const told = data as Partial<{ room: RoomId; seq: number }> | null;
      if (told?.room !== undefined && told.seq !== undefined) open(told.room, told.seq);
    });
  }

  get permission(): NotificationPermission {
    return 'Notification' in window ? Notification.permission : 'denied';
  }

  /** Must be called from a click: browsers refuse to ask otherwise. */
  async ask(): Promise<NotificationPermission> {
    return 'Notification' in window ? Notification.requestPermission() : 'denied';
  }

  arrived(message: Arrived): void {
    const { event, view, me, isOpen } = message;
    if (this.permission !== 'granted' || !deserves(event, view, me)) return;
    const name = [me, event.room, event.seq, event.key].join('/');
    if (isOpen && isLooking()) return this.#tabs.postMessage(name);
    setTimeout(() => {
      if (this.#settled.has(name)) return;
      this.#tabs.postMessage(name);
      this.#show(message);
    }, OTHERS_MS);
  }

  #settle(name: string): void {
    this.#settled.add(name);
    for (const oldest of this.#settled) {
      if (this.#settled.size <= SETTLED_MAX) return;
      this.#settled.delete(oldest);
    }
  }

  #show({ event: { room, seq }, title, text }: Arrived): void {
    // One per room: a new one replaces the last, as people read rooms and not messages.
    const options = { body: text.slice(0, TEXT_CHARS_MAX), tag: `folkmoot.${room}`, icon: '/icon.svg', data: { room, seq } };
    try {
      const notification = new Notification(title, options);
      notification.onclick = () => {
        window.focus();
        this.#open(room, seq);
        notification.close();
      };
    } catch {
      // On phones only the worker may show one; it tells us of the click.
      void navigator.serviceWorker?.ready.then((worker) => worker.showNotification(title, options));
    }
  }
}
