//! The list of rooms as this device arranges it: the layout made by hand, and the order of direct conversations, which is
//! held while somebody points at the list.

import type { Keep } from '../net/keep';
import { byActivity, type Rooms } from '../model/rooms';
import { arranged, NO_LAYOUT, type Layout, type Section } from '../model/sidebar';
import type { RoomId, UserId } from '../protocol/generated/chat';

export class Arrangement {
  layout = $state.raw<Layout>(NO_LAYOUT);
  #directOrder = $state.raw<readonly RoomId[]>([]);
  readonly #keep: Keep;
  readonly #user: UserId;

  constructor(keep: Keep, user: UserId) {
    this.#keep = keep;
    this.#user = user;
    this.layout = keep.layout(user) ?? NO_LAYOUT;
  }

  sections(rooms: Rooms): Section[] {
    return arranged(rooms, this.layout, this.#directOrder);
  }

  /** Nobody points at the list: direct conversations may move to where they belong. */
  settle(rooms: Rooms): void {
    const order = [...rooms.values()].filter((view) => view.kind === 'direct').sort(byActivity).map((view) => view.id);
    if (order.length !== this.#directOrder.length || order.some((id, index) => id !== this.#directOrder[index])) this.#directOrder = order;
  }

  change(layout: Layout): void {
    this.layout = layout;
    this.#keep.setLayout(this.#user, layout);
  }
}
