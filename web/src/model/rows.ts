//! What a row of a room shows besides its message: above it a day, a new-messages line, an author, decided from the message
//! and the one before it; below it what grew out of it.

import type { MessageView } from '../protocol/generated/chat';
import type { Grown } from './answers';
import type { SeqRange, Timeline } from './timeline';

/** Messages of one author within this time share one heading. */
const GROUP_MS_MAX = 5 * 60 * 1000;

export interface RowHeading {
  /** The day's first moment in local time, when this message opens a new day. */
  day: number | undefined;
  /** The person left off before this message. */
  isNew: boolean;
  author: boolean;
}

/** All that a row is drawn from; as long as it is the same value, nothing of the row has changed. */
export interface Row extends Partial<RowHeading> {
  seq: number;
  /** Not there as long as it has not been fetched. */
  message: MessageView | undefined;
  /** The answers that grew out of it; said once, where they begin. */
  grown: Grown | undefined;
  /** The last of them, where it is certain that none is missing. */
  lastAnswer: MessageView | undefined;
}

/** The rows of a range. Those that are as they were in `before` are the same values. */
export function rowsOf(timeline: Timeline, { from, to }: SeqRange, newAfter: number | undefined, before: readonly Row[]): Row[] {
  const known = new Map(before.map((row) => [row.seq, row]));
  const rows: Row[] = [];
  for (let seq = Math.max(from, timeline.firstSeq); seq <= to; seq += 1) {
    const row = rowAt(timeline, seq, newAfter);
    const old = known.get(seq);
    rows.push(old && isSame(old, row) ? old : row);
  }
  return rows;
}

function rowAt(timeline: Timeline, seq: number, newAfter: number | undefined): Row {
  const message = timeline.at(seq);
  if (!message) return { seq, message, grown: undefined, lastAnswer: undefined };
  const all = message.reply_to === undefined ? timeline.grownFrom(seq) : undefined;
  const isWhole = all !== undefined && timeline.isWholeAfter(seq);
  // A single answer right below says itself what it answers.
  const grown = isWhole && all.count === 1 && all.last === seq + 1 ? undefined : all;
  const lastAnswer = grown && isWhole ? timeline.at(grown.last) : undefined;
  return { seq, message, grown, lastAnswer, ...headingOf(message, timeline.at(seq - 1), newAfter) };
}

function isSame(one: Row, other: Row): boolean {
  const isHeadSame = one.day === other.day && one.isNew === other.isNew && one.author === other.author;
  const isGrownSame = one.grown?.count === other.grown?.count && one.grown?.last === other.grown?.last;
  return one.message === other.message && isHeadSame && isGrownSame && one.lastAnswer === other.lastAnswer;
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
