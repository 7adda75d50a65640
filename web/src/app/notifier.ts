//! Notifications of the browser, for messages that the person is not looking at and has not silenced.

import type { RoomEvent } from '../protocol/events';
import type { RoomId, RoomView, UserId } from '../protocol/generated/chat';

type MessageEvent = Extract<RoomEvent, { type: 'message' }>;

/** Whether a message deserves one: `none` never, `mentions` when named, `all` always; a direct message names its reader. */
export function deserves(event: MessageEvent, view: RoomView, me: UserId): boolean {
  if (event.user === me || view.notify === 'none') return false;
  if (view.kind === 'direct' || view.notify === 'all') return true;
  return event.mentions.includes(me) || event.mention_all === true;
}

export class Notifier {
  readonly #open: (room: RoomId, seq: number) => void;

  constructor(open: (room: RoomId, seq: number) => void) {
    this.#open = open;
  }

  get permission(): NotificationPermission {
    return 'Notification' in window ? Notification.permission : 'denied';
  }

  /** Must be called from a click: browsers refuse to ask otherwise. */
  async ask(): Promise<NotificationPermission> {
    return 'Notification' in window ? Notification.requestPermission() : 'denied';
  }

  arrived(event: MessageEvent, view: RoomView, me: UserId, title: string, text: string): void {
    if (document.visibilityState === 'visible' && document.hasFocus()) return;
    if (this.permission !== 'granted' || !deserves(event, view, me)) return;
    // One per room: a new one replaces the last, as people read rooms and not messages.
    const notification = new Notification(title, { body: text.slice(0, 200), tag: `folkmoot.${view.id}`, icon: '/icon.svg' });
    notification.onclick = () => {
      window.focus();
      this.#open(event.room, event.seq);
      notification.close();
    };
  }
}
