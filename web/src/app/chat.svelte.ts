//! Everything of one signed-in person: rooms, conversations, connection, unsent messages. It wires what arrives to the
//! models; what an event means is decided in `model/`, what a person can do is in `actions.ts`.

import { flushSync } from 'svelte';

import { ANSWER_MS_MAX, Archive, ARCHIVED_MESSAGES_MAX, type ArchivedRoom } from '../net/archive';
import type { Keep, KeptSession } from '../net/keep';
import type { OutboxEntry, OutboxFile } from '../net/outbox';
import type { Subscribed } from '../net/socket';
import { within } from '../net/within';
import { followed, FOLLOWED_MAX } from '../model/follow';
import { applyRoomEvent, applyUserEvent, listed, read, refreshed, withRoom, without, type Rooms } from '../model/rooms';
import { asRoomEvent, asUserEvent, type RoomEvent, type UserEvent } from '../protocol/events';
import type { Reply } from '../protocol/generated/methods';
import type { Attachment, ConnectData, LeaveReason, RoomId, RoomView, UserView } from '../protocol/generated/chat';
import { Arrangement } from './arrangement.svelte';
import { Clock } from './clock.svelte';
import { Conversation } from './conversation.svelte';
import { Deletions } from './deletions.svelte';
import { take as takeGlimpse } from './glimpse';
import { Inbox } from './inbox';
import { Link } from './link.svelte';
import { isLooking } from './looking';
import { Media } from './media';
import { People } from './people.svelte';
import { Presence } from './presence.svelte';
import { Reading } from './reading.svelte';
import { Saved } from './saved.svelte';
import { Search } from './search.svelte';
import { Sender } from './sender.svelte';
import type { Uploads } from './uploads.svelte';

/** The archive is written this long after the first change: often enough to be useful, rarely enough to be cheap. */
const ARCHIVE_AFTER_MS = 1_500;
/** Rooms beyond those followed are listed again this often. */
const RELIST_MS = 60_000;

export interface ChatListener {
  tokenRejected(): void;
  /** A message arrived live, for notifications and announcements. */
  arrived(event: Extract<RoomEvent, { type: 'message' }>, view: RoomView): void;
  /** Something asked for a moment ago did not work. */
  failed(failure: unknown): void;
  /** The browser refuses to keep what is read, or does not answer. */
  keepsNothing(): void;
  /** How somebody is called whose account was deleted. */
  nameless(): string;
  /** The person is not in the room any more; `reason` as far as the server gave one. */
  roomGone(view: RoomView, reason: LeaveReason | undefined): void;
}

export class Chat {
  me = $state.raw<UserView>() as UserView;
  rooms = $state.raw<Rooms>(new Map());
  /** False until the rooms are known, from the archive or the server. */
  loaded = $state(false);
  /** Whether this person administers the server; it says so with each connection. */
  administrator = $state(false);
  readonly link: Link;
  readonly sender: Sender;
  readonly media: Media;
  readonly reading = new Reading(this);
  readonly clock = new Clock(() => this.link.renew());
  readonly people = new People({
    ask: (user) => this.link.call('user.get', { user }), nameless: () => this.#listener.nameless(), now: () => this.clock.now(),
  });
  readonly presence: Presence;
  readonly search: Search;
  readonly saved: Saved;
  readonly arrangement: Arrangement;
  readonly deletions: Deletions;
  /** There once the first file is attached. */
  uploads = $state.raw<Uploads>();
  readonly #listener: ChatListener;
  readonly #token: string;
  #loadingUploads: Promise<Uploads> | undefined;
  readonly #archive: Archive;
  readonly #conversations = new Map<RoomId, Conversation>();
  readonly #inbox = new Inbox((events) => flushSync(() => this.#applyRoomEvents(events)));
  readonly #changed = new Set<RoomId>();
  readonly #forgotten = new Set<RoomId>();
  /** When rooms came and went, in steps: an answer that was asked for before that is older than what is known here. */
  readonly #movedAt = new Map<RoomId, number>();
  #moves = 0;
  /** Rooms left behind in this tab, for what is still to be said about them. */
  readonly #gone = new Map<RoomId, RoomView>();
  #archiving: ReturnType<typeof setTimeout> | undefined;
  #relisting: ReturnType<typeof setInterval> | undefined;
  #open: RoomId | undefined;
  #isStopped = false;

  constructor(endpoint: string, session: KeptSession, keep: Keep, listener: ChatListener) {
    this.setProfile(session.user);
    this.#listener = listener;
    this.#token = session.token;
    this.media = new Media(session.token);
    this.#archive = Archive.open(session.user.id);
    this.link = new Link(endpoint, session.token, {
      online: () => void this.#onOnline(),
      welcomed: (data) => this.#onWelcomed(data),
      tokenRejected: () => listener.tokenRejected(),
      roomPublication: (room, payload, offset) => this.#onRoomPublication(room, payload, offset),
      userPublication: (payload) => this.#onUserPublication(payload),
      userStreamReset: () => void this.list(),
      subscribed: (subscribed) => this.#onSubscribed(subscribed),
      unsubscribed: (room) => void this.#onUnsubscribed(room),
    });
    // A room that does not take the question is asked again when it is subscribed to again.
    this.presence = new Presence((question) => void this.link.call('presence.watch', question).catch(() => undefined));
    this.search = new Search(this.link);
    this.saved = new Saved(this.link);
    this.deletions = new Deletions(this, (failure) => listener.failed(failure));
    this.arrangement = new Arrangement(keep, session.user.id);
    this.sender = new Sender(this.link, keep, session.user.id, {
      acknowledged: (entry, reply) => this.#onAcknowledged(entry, reply),
      upload: (files) => this.#uploadAgain(files),
    });
  }

  /** Shows what was archived, then connects from where the archive ends. */
  async start(): Promise<void> {
    this.sender.restore();
    // A browser that holds nothing takes its time to make the database; the list of the server says more.
    void takeGlimpse()?.then((room) => room && !this.loaded && this.#showKept([{ ...room, view: this.#named(room.view) }]));
    const loading = this.#archive.load();
    const archived = await within(ANSWER_MS_MAX, loading);
    if (this.#isStopped) return;
    if (archived === undefined) this.#listener.keepsNothing();
    this.#showKept(archived ?? []);
    this.loaded ||= (archived ?? []).length > 0;
    this.#follow();
    void loading.then((late) => late && archived === undefined && !this.loaded && this.#showKept(late));
    this.link.start();
    this.#relisting = setInterval(() => {
      if (this.link.isOnline && this.rooms.size > FOLLOWED_MAX) void this.list();
    }, RELIST_MS);
  }

  #showKept(kept: readonly ArchivedRoom[]): void {
    this.rooms = new Map([...this.rooms, ...kept.map(({ view }) => [view.id, view] as const)]);
    for (const { view, messages } of kept) if (messages.length > 0) this.conversation(view).addArchived(messages);
  }

  async stop(forget: boolean): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#relisting);
    clearTimeout(this.#archiving);
    this.#inbox.stop();
    this.sender.stop();
    this.reading.stop();
    this.deletions.stop();
    this.people.stop();
    this.clock.stop();
    this.link.stop();
    this.uploads?.end();
    this.media.forget();
    if (forget) await this.#archive.erase();
  }

  /** Somebody is typing: what arrives in a burst lets the keys go first. */
  keyPressed(): void {
    this.#inbox.keyPressed();
  }

  conversation(view: RoomView): Conversation {
    let conversation = this.#conversations.get(view.id);
    if (!conversation) {
      conversation = new Conversation(view, this.link, this.me.id);
      this.#conversations.set(view.id, conversation);
    }
    return conversation;
  }

  /** Entering a room: it is followed from now on, and its new-messages line is set. */
  enter(view: RoomView): Conversation {
    const conversation = this.conversation(view);
    conversation.newAfter = view.unread > 0 ? view.read_seq : undefined;
    this.#open = view.id;
    this.#follow();
    return conversation;
  }

  /** Files for what is being written in a room; they go up at once. */
  async attach(conversation: Conversation, files: readonly File[]): Promise<void> {
    // What was sent meanwhile would go without them.
    conversation.attaching += 1;
    const uploads = await this.loadUploads().finally(() => (conversation.attaching -= 1));
    await uploads.add(conversation, files);
  }

  loadUploads(): Promise<Uploads> {
    this.#loadingUploads ??= import('./uploads.svelte').then(({ Uploads }) => {
      this.uploads = new Uploads(this.#token, {
        arrived: (draft, { id }) => this.sender.dispatch({ type: 'uploaded', file: draft.key, id }),
        failed: (draft) => this.sender.dispatch({ type: 'upload_failed', file: draft.key, error: draft.error }),
        underWay: (some) => (this.link.socket.besideFiles = some),
      });
      return this.uploads;
    });
    // Without a network there is nothing to load it from; the next try asks again.
    this.#loadingUploads.catch(() => (this.#loadingUploads = undefined));
    return this.#loadingUploads;
  }

  /** Somebody is about to attach a file: what may be attached is said before they do. */
  learnLimits(): void {
    if (this.uploads?.limits === undefined) this.loadUploads().then((uploads) => uploads.loadLimits(), () => undefined);
  }

  /** Gives up a message that was not sent, and its files. */
  discard(entry: OutboxEntry): void {
    this.sender.dispatch({ type: 'discard', key: entry.key });
    const drafts = (entry.files ?? []).flatMap(({ key }) => this.uploads?.draft(key) ?? []);
    for (const draft of drafts) this.uploads?.drop(draft);
  }

  add(view: RoomView): void {
    this.#moved(view.id);
    this.rooms = withRoom(this.rooms, this.#named(view));
    this.#note(view.id);
    this.#follow();
  }

  /** Leaves a room behind; `reason` is absent where only a listing showed that it is gone. */
  drop(room: RoomId, reason?: LeaveReason): void {
    this.#moved(room);
    const view = this.rooms.get(room);
    if (!view) {
      // A listing may show that it is gone before the event says why.
      const known = this.#gone.get(room);
      if (known && reason !== undefined && reason !== 'left') this.#listener.roomGone(known, reason);
      return;
    }
    this.#gone.set(room, view);
    this.rooms = without(this.rooms, room);
    this.presence.forget(room);
    this.#conversations.delete(room);
    this.link.socket.unsubscribe(room);
    this.#forgotten.add(room);
    this.#note(room);
    this.#listener.roomGone(view, reason);
  }

  /** Someone's new name: shown on everything they ever wrote. */
  setProfile(me: UserView): void {
    this.me = me;
    this.people.meet([me]);
  }

  setRead(room: RoomId, seq: number, mentions: number): void {
    this.rooms = read(this.rooms, room, seq, mentions);
    this.#note(room);
  }

  async list(): Promise<void> {
    const asked = this.#moves;
    const answer = await this.#allRooms().catch(() => undefined);
    if (!answer) return;
    // What came or went while the answer was on its way is as it is known here.
    const hasMoved = (room: RoomId) => (this.#movedAt.get(room) ?? 0) > asked;
    const views = answer.filter(({ id }) => !hasMoved(id) || this.rooms.has(id));
    const present = new Set(views.map((view) => view.id));
    const missing = [...this.rooms.values()].filter(({ id }) => !present.has(id));
    for (const { id } of missing) if (!hasMoved(id)) this.drop(id);
    for (const view of views) this.#meetEpoch(view);
    const before = this.rooms;
    this.rooms = listed(this.rooms, [...views, ...missing.filter(({ id }) => this.rooms.has(id))]);
    this.loaded = true;
    this.people.meet(views.flatMap((view) => view.peer ?? []));
    // Read here, but the page went before it could be reported.
    for (const { id, read_seq } of views) {
      const reached = this.rooms.get(id)?.read_seq ?? 0;
      if (reached > read_seq) this.reading.report(id, reached);
    }
    for (const view of this.rooms.values()) {
      const conversation = this.#conversations.get(view.id);
      if (view.id === this.#open && view.unread > 0 && !isLooking()) conversation?.leftOffAt(view.read_seq);
      conversation?.extendTo(view.last_seq);
      // All of thousands of rooms would be written anew once a minute.
      if (view !== before.get(view.id)) this.#note(view.id);
    }
    this.#follow();
  }

  /** Of a room that is not followed only the list tells that its stream began anew. */
  #meetEpoch(view: RoomView): void {
    const known = this.rooms.get(view.id);
    const conversation = this.#conversations.get(view.id);
    if (!known || !conversation || known.epoch === view.epoch || this.link.socket.isSubscribed(view.id)) return;
    conversation.invalidate();
    conversation.cutTo(view.last_seq);
  }

  #moved(room: RoomId): void {
    this.#moves += 1;
    this.#movedAt.set(room, this.#moves);
  }

  /** All rooms, page by page; archived ones are listed by themselves. */
  async #allRooms(): Promise<RoomView[]> {
    const views: RoomView[] = [];
    for (const archived of [false, true]) {
      let page = await this.link.call('rooms.list', { archived });
      views.push(...page.rooms);
      while (page.next !== undefined) {
        page = await this.link.call('rooms.list', { archived, after: page.next });
        views.push(...page.rooms);
      }
    }
    return views.map((view) => this.#named(view));
  }

  /** Who has deleted the account has no name any more. */
  #named(view: RoomView): RoomView {
    if (view.peer?.deleted !== true) return view;
    return { ...view, peer: { ...view.peer, display_name: this.#listener.nameless() } };
  }

  #onWelcomed(data: unknown): void {
    const told: Partial<ConnectData> = typeof data === 'object' && data !== null ? data : {};
    this.administrator = told.administrator === true;
    if (told.now !== undefined) this.clock.set(told.now);
  }

  async #onOnline(): Promise<void> {
    this.presence.restart();
    this.people.restart();
    for (const conversation of this.#conversations.values()) conversation.membersStale = true;
    // What one changed on another device while this one was away.
    this.link.call('user.get', { user: this.me.id }).then((me) => this.setProfile(me), () => undefined);
    this.sender.dispatch({ type: 'online' });
    this.uploads?.resume();
    this.reading.flush();
    for (const conversation of this.#conversations.values()) if (conversation.room === this.#open) conversation.retry();
    await this.list();
    await this.saved.load();
  }

  #onRoomPublication(room: RoomId, payload: unknown, offset: number | undefined): void {
    const event = asRoomEvent(payload);
    if (event?.type === 'presence') return this.presence.told(event);
    if (event && event.room === room) this.#inbox.push({ event, offset });
  }

  #applyRoomEvents(batch: { event: RoomEvent; offset: number | undefined }[]): void {
    for (const { event, offset } of batch) {
      const before = this.rooms.get(event.room);
      this.rooms = applyRoomEvent(this.rooms, event, offset, this.me.id);
      if (event.type === 'profile') {
        this.people.meet([{ name: '', ...event, id: event.user }]);
        continue;
      }
      const view = this.rooms.get(event.room);
      if (!view || !before) continue;
      this.conversation(view).apply(event);
      this.saved.heard(event);
      if (event.type === 'left' && event.reason === 'deleted') this.people.forget(event.user);
      // The two listings, of archived rooms and of the others, are not of one moment.
      if (event.type === 'archived') this.#moved(event.room);
      if (event.type === 'message' || event.type === 'typing' || event.type === 'joined') this.people.heard(event.user, event.name);
      if (event.type === 'typing') continue;
      if (event.type === 'message' && event.room === this.#open && event.user !== this.me.id && !isLooking()) {
        this.conversation(view).leftOffAt(before.read_seq);
      }
      this.#note(event.room);
      if (event.type !== 'message') continue;
      if (event.user === this.me.id) {
        const entry = this.sender.outbox.find(({ key }) => key === event.key);
        if (entry) this.#adoptFiles(entry, event.attachments ?? []);
        this.sender.dispatch({ type: 'acknowledged', key: event.key });
      } else if (event.seq > before.last_seq) this.#listener.arrived(event, view);
    }
    this.#readWhatIsSeen();
  }

  /** Whoever is at the end of the open room sees what comes. Counted before it is drawn: else the list of rooms and the
   *  page's title would say for a moment that it is unread. */
  #readWhatIsSeen(): void {
    const open = this.#open === undefined ? undefined : this.#conversations.get(this.#open);
    if (open?.isAtEnd === true) this.reading.reached(open.room, open.timeline.lastSeq);
  }

  #onUserPublication(payload: unknown): void {
    const event: UserEvent | undefined = asUserEvent(payload);
    if (!event) return;
    // Counts must not run ahead of messages that wait for the next frame.
    this.#inbox.flush();
    if (event.type === 'room_removed') return this.drop(event.room, event.reason);
    this.rooms = applyUserEvent(this.rooms, event, (room) => this.link.socket.isSubscribed(room));
    if (event.type === 'room_added') {
      this.add(event.room);
      // What was saved there before can be seen again.
      void this.saved.load();
    }
    if (event.type === 'read') this.#note(event.room);
    if (event.type === 'saved') this.saved.apply(event.room, event.seq, event.on);
    if (event.type === 'profile' && event.user === this.me.id) {
      this.setProfile({ ...event, id: event.user });
    }
  }

  #onSubscribed({ room, complete }: Subscribed): void {
    this.presence.subscribed(room);
    if (complete) return;
    this.#conversations.get(room)?.invalidate();
    void this.#refresh(room);
  }

  /** The view's counts after missed events; the missed messages themselves are fetched as they are looked at. */
  async #refresh(room: RoomId): Promise<void> {
    const view = await this.link.call('room.get', { room }).catch(() => undefined);
    if (!view) return;
    this.rooms = refreshed(this.rooms, this.#named(view));
    const conversation = this.#conversations.get(room);
    conversation?.cutTo(view.last_seq);
    conversation?.extendTo(view.last_seq);
    this.#note(room);
  }

  /** The server ended the subscription. Only a listing tells whether the room is gone or the position was refused. */
  async #onUnsubscribed(room: RoomId): Promise<void> {
    this.#unfollow(room);
    this.#conversations.get(room)?.invalidate();
    const view = await this.link.call('room.get', { room }).catch(() => undefined);
    if (!view) return this.list();
    this.rooms = refreshed(this.rooms, view);
    this.#conversations.get(room)?.cutTo(view.last_seq);
    this.#follow();
  }

  #onAcknowledged(entry: OutboxEntry, reply: Reply<'message.send'>): void {
    const view = this.rooms.get(entry.room);
    if (!view) return;
    // Its event may be a moment away: until then the acknowledged text stands in its place.
    const { key, room, body, files = [] } = entry;
    const attachments = files.flatMap((file) => this.uploads?.draft(file.key)?.attachment ?? []);
    this.conversation(view).addArchived([
      {
        room, key, body, seq: reply.seq, at: reply.at, user: this.me.id, name: this.me.display_name || this.me.name, mentions: [], reactions: [],
        ...(attachments.length > 0 ? { attachments } : {}),
      },
    ]);
    this.#adoptFiles(entry, attachments);
  }

  /** What the sender saw of a picture goes on being shown; nothing is fetched that is here already. */
  #adoptFiles(entry: OutboxEntry, attachments: readonly Attachment[]): void {
    for (const file of entry.files ?? []) {
      const draft = this.uploads?.draft(file.key);
      const url = attachments.find(({ id }) => id === file.id)?.thumbnail_url;
      if (!draft) continue;
      if (draft.preview && url) this.media.keep(url, draft.preview);
      this.uploads?.release(draft);
    }
  }

  #uploadAgain(files: readonly OutboxFile[]): boolean {
    const drafts = files.map((file) => this.uploads?.draft(file.key));
    if (!drafts.every((draft) => draft !== undefined)) return false;
    for (const draft of drafts) this.uploads?.retry(draft);
    return true;
  }

  #follow(): void {
    const chosen = followed(this.rooms, this.#open, FOLLOWED_MAX);
    for (const [room, view] of this.rooms) {
      const isFollowed = chosen.has(room);
      // Whether the other one of a direct conversation is there stands in the list of rooms.
      this.presence.show(room, this, isFollowed && view.peer ? [view.peer.id] : []);
      if (isFollowed) this.link.socket.subscribe(room, { offset: view.offset, epoch: view.epoch });
      else this.#unfollow(room);
    }
  }

  #unfollow(room: RoomId): void {
    this.link.socket.unsubscribe(room);
    this.presence.unsubscribed(room);
  }

  #note(room: RoomId): void {
    this.#changed.add(room);
    this.#archiving ??= setTimeout(() => void this.#writeArchive(), ARCHIVE_AFTER_MS);
  }

  async #writeArchive(): Promise<void> {
    this.#archiving = undefined;
    const kept: ArchivedRoom[] = [];
    for (const room of this.#changed) {
      const view = this.rooms.get(room);
      if (!view) continue;
      this.#forgotten.delete(room);
      kept.push({ view, messages: this.#conversations.get(room)?.timeline.newest(ARCHIVED_MESSAGES_MAX) ?? [] });
    }
    const removed = [...this.#forgotten];
    this.#changed.clear();
    this.#forgotten.clear();
    await this.#archive.put(kept, removed);
  }
}
