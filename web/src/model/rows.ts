//! What stands above a message: a day, a new-messages line, an author. Decided from the message and the one before it.

import type { MessageView } from '../protocol/generated/chat';

/** Messages of one author within this time share one heading. */
const GROUP_MS_MAX = 5 * 60 * 1000;

export interface RowHeading {
  /** The day's first moment in local time, when this message opens a new day. */
  day: number | undefined;
  /** The person left off before this message. */
  isNew: boolean;
  author: boolean;
}

/**
 * `previous` is the message before it; undefined when it is the first one or not loaded.
 * `newAfter` is the last number the person had read on entering the room.
 */
export function headingOf(message: MessageView, previous: MessageView | undefined, newAfter: number | undefined): RowHeading {
  const day = dayOf(message.at);
  const opensDay = previous === undefined || dayOf(previous.at) !== day;
  const isNew = newAfter !== undefined && message.seq === newAfter + 1;
  const author =
    opensDay ||
    isNew ||
    previous.user !== message.user ||
    previous.deleted === true ||
    message.reply_to !== undefined ||
    message.at - previous.at > GROUP_MS_MAX;
  return { day: opensDay ? day : undefined, isNew, author };
}

function dayOf(at: number): number {
  const day = new Date(at);
  day.setHours(0, 0, 0, 0);
  return day.getTime();
}
