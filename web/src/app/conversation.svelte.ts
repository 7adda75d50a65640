//! One room as it is on screen: its messages, what is being fetched, who types, where the person left off and scrolled to.
//! It lives as long as the tab, so that coming back to a room costs no fetch.

import { Heights } from '../model/heights';
import { withNote, type Note } from '../model/notes';
import { Timeline, type SeqRange } from '../model/timeline';
import { expired, noticed, NOBODY, type Typists } from '../model/typing';
import type { RoomEvent } from '../protocol/events';
import { HISTORY_PAGE_MAX } from '../protocol/generated/limits';
import type { MemberView, MessageView, ReplyRef, RoomId, RoomView, UserId } from '../protocol/generated/chat';
import type { KeptEdit } from '../net/keep';
import type { Link } from './link.svelte';
import type { Draft } from './uploads.svelte';

/** Before the first measurement; about the height of a one-line message with half a heading. */
const ROW_HEIGHT_ESTIMATE = 44;
/** Pages are asked for once scrolling has settled this long, so that a dragged scroll bar does not ask for every page. */
const SETTLE_MS = 60;

/** Messages of a room that are held at once: a hundred screens. A tab may be open for weeks. */
const HELD_MAX = 2_000;

/** Where the list was left: at the newest message, or with a message's top at a distance from the view's top. */
export type Anchor = 'end' | { seq: number; delta: number };

export class Conversation {
  readonly room: RoomId;
  readonly timeline: Timeline;
  readonly heights = new Heights(ROW_HEIGHT_ESTIMATE);
  /** Rises with every visible change of the timeline, which itself is too large to be deeply reactive. */
  version = $state(0);
  typists = $state.raw<Typists>(NOBODY);
  members = $state.raw<readonly MemberView[]>([]);
  /** Set while the list of members has more pages. */
  membersAfter = $state<UserId>();
  /** Somebody came whom the list does not hold: whoever needs it fetches it again. */
  membersStale = $state(true);
  /** Who came and went while this client listened. */
  notes = $state.raw<readonly Note[]>([]);
  /** The last number read on entering; the new-messages line stands after it. */
  newAfter = $state<number>();
  /** Rises when a pinned message may have come, gone or changed. */
  pinsVersion = $state(0);
  /** The message whose thread is open beside the room, when that panel is. */
  threadOf = $state<number>();
  /** Rises when an answer may have come, gone or changed. */
  threadVersion = $state(0);
  /** Events were lost and what is on screen was fetched again. */
  refetched = $state(false);
  loadFailed = $state(false);
  anchor: Anchor = 'end';
  /** It is on the page, with its newest message in view. */
  isAtEnd = false;
  replyTo = $state.raw<ReplyRef>();
  /** So many times files were chosen that are not among the drafts yet. */
  attaching = $state(0);
  /** Files attached to what is being written. */
  drafts = $state.raw<readonly Draft[]>([]);
  /** The number of the message that is being edited in place. */
  editing = $state<number>();
  /** What it is being changed to. */
  edit: KeptEdit | undefined;
  readonly #link: Link;
  readonly #me: UserId;
  #wanted: SeqRange | undefined;
  #settling: ReturnType<typeof setTimeout> | undefined;
  #fetching = false;
  #expiry: ReturnType<typeof setTimeout> | undefined;

  constructor(view: RoomView, link: Link, me: UserId) {
    this.room = view.id;
    this.timeline = new Timeline(view.id, view.last_seq);
    this.#link = link;
    this.#me = me;
  }

  apply(event: RoomEvent): void {
    if (event.type === 'typing') return this.#applyTyping(event);
    this.#applyMembership(event);
    if (concernsThreads(event)) this.threadVersion += 1;
    // What is gone cannot be answered: the message would be refused.
    if (event.type === 'deleted' && this.replyTo?.seq === event.seq) this.replyTo = undefined;
    if (event.type === 'pinned' || event.type === 'edited' || event.type === 'deleted' || event.type === 'expired') this.pinsVersion += 1;
    if (this.timeline.apply(event, this.#me)) this.version += 1;
    this.#letGo();
    if (event.type === 'message' && this.typists.has(event.user)) {
      this.typists = noticed(this.typists, event.user, event.name, false, performance.now());
    }
  }

  /** Something new came while the person looked away: the line stands where they left off. */
  leftOffAt(readSeq: number): void {
    if (this.newAfter === undefined || this.newAfter < readSeq) this.newAfter = readSeq;
  }

  /** An edit that an earlier page had begun. */
  resumeEdit(kept: KeptEdit | undefined): void {
    if (this.edit || !kept) return;
    this.edit = kept;
    this.editing = kept.seq;
  }

  /** Shows the field in which a message is changed. */
  beginEdit({ seq, at }: MessageView): void {
    // Of a message that a restored server has lost, and whose number another one has now.
    if (this.edit?.seq === seq && this.edit.at !== at) this.edit = undefined;
    this.editing = seq;
  }

  isEditing({ seq, at }: MessageView): boolean {
    return this.editing === seq && (this.edit?.seq !== seq || this.edit.at === at);
  }

  addArchived(messages: readonly MessageView[]): void {
    this.timeline.addArchived(messages);
    this.version += 1;
  }

  extendTo(lastSeq: number): void {
    if (lastSeq <= this.timeline.lastSeq) return;
    this.timeline.extendTo(lastSeq);
    this.version += 1;
  }

  /** Events were missed that nobody can replay: everything is fetched again as it is looked at. */
  invalidate(): void {
    const hadSomething = this.timeline.heldCount > 0;
    this.timeline.invalidate();
    this.refetched ||= hadSomething;
    this.pinsVersion += 1;
    this.threadVersion += 1;
    this.version += 1;
  }

  /** The server was put back to an older state: what it has lost is not shown any more. */
  cutTo(lastSeq: number): void {
    if (!this.timeline.cutTo(lastSeq)) return;
    const last = this.timeline.lastSeq;
    const isLost = (seq: number | undefined) => seq !== undefined && seq > last;
    this.heights.shrink(last);
    this.loadFailed = false;
    if (this.anchor !== 'end' && isLost(this.anchor.seq)) this.anchor = 'end';
    if (isLost(this.newAfter)) this.newAfter = undefined;
    if (isLost(this.replyTo?.seq)) this.replyTo = undefined;
    if (isLost(this.editing)) this.editing = undefined;
    if (isLost(this.edit?.seq)) this.edit = undefined;
    if (isLost(this.threadOf)) this.threadOf = undefined;
    this.version += 1;
  }

  /** The list shows this range: whatever is missing of it is fetched once scrolling settles. */
  want(range: SeqRange): void {
    this.#wanted = range;
    if (this.#fetching || !this.timeline.missing(range, 1)) return;
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => void this.#fetch(), SETTLE_MS);
  }

  /** Asks again after a failure or once the connection is back. */
  retry(): void {
    this.loadFailed = false;
    if (this.#wanted && !this.#fetching) void this.#fetch();
  }

  async #fetch(): Promise<void> {
    const range = this.#wanted && this.timeline.missing(this.#wanted, HISTORY_PAGE_MAX);
    if (!range || this.#fetching || !this.#link.isOnline) return;
    this.#fetching = true;
    try {
      const page = pageAround(range, this.timeline);
      const reply = await this.#link.call('history.get', { room: this.room, after: page.from - 1, limit: page.to - page.from + 1 });
      // Without any message the room keeps none of those asked for.
      this.timeline.keepFrom(reply.first_seq === 0 ? page.to + 1 : reply.first_seq);
      this.timeline.addPage(reply.messages);
      this.#letGo();
      this.loadFailed = this.timeline.missing(range, 1)?.from === range.from;
    } catch {
      this.loadFailed = true;
    } finally {
      this.#fetching = false;
      this.version += 1;
    }
    if (!this.loadFailed) void this.#fetch();
  }

  #letGo(): void {
    const { lastSeq } = this.timeline;
    this.timeline.letGo(this.#wanted ?? { from: lastSeq, to: lastSeq }, HELD_MAX);
  }

  #applyMembership(event: Exclude<RoomEvent, { type: 'typing' }>): void {
    this.notes = withNote(this.notes, event, this.timeline.lastSeq);
    if (event.type === 'joined') this.membersStale = true;
    if (event.type === 'left') {
      this.members = this.members.filter(({ user }) => user !== event.user);
      // Whoever was removed in the middle of a sentence is not typing any more.
      this.typists = noticed(this.typists, event.user, '', false, performance.now());
    }
    if (event.type === 'role') this.members = this.members.map((member) => (member.user === event.user ? withRole(member, event) : member));
  }

  #applyTyping(event: Extract<RoomEvent, { type: 'typing' }>): void {
    if (event.user === this.#me) return;
    this.typists = noticed(this.typists, event.user, event.name, event.on, performance.now());
    this.#watchExpiry();
  }

  #watchExpiry(): void {
    clearTimeout(this.#expiry);
    const first = Math.min(...[...this.typists.values()].map((typist) => typist.until));
    if (!Number.isFinite(first)) return;
    this.#expiry = setTimeout(() => {
      this.typists = expired(this.typists, performance.now());
      this.#watchExpiry();
    }, Math.max(0, first - performance.now()) + 1);
  }
}

function concernsThreads(event: RoomEvent): boolean {
  const isAnswer = event.type === 'message' && event.reply_to !== undefined;
  return isAnswer || event.type === 'edited' || event.type === 'deleted' || event.type === 'expired';
}

function withRole(member: MemberView, { role, muted_until }: Extract<RoomEvent, { type: 'role' }>): MemberView {
  const { muted_until: _until, ...rest } = member;
  return muted_until === undefined ? { ...rest, role } : { ...rest, role, muted_until };
}

/** A full page that ends with the missing stretch's surroundings: one fetch serves some scrolling either way. */
function pageAround(range: SeqRange, { firstSeq, lastSeq }: Timeline): SeqRange {
  const spare = HISTORY_PAGE_MAX - (range.to - range.from + 1);
  const from = Math.max(firstSeq, range.from - Math.floor(spare / 2));
  return { from, to: Math.min(lastSeq, from + HISTORY_PAGE_MAX - 1) };
}
