//! The root that everything hangs off: who is signed in, where in the client we are, what is open on top of it.

import { getContext, setContext } from 'svelte';

import { changePassword, deleteAccount, resetPassword, setPicture, setupState, setUp, signIn, signUp, Unreachable, type Credentials } from '../net/http';
import { saysEnded, type Keep, type KeptSession } from '../net/keep';
import { titleOf } from '../model/rooms';
import { NoReply } from '../protocol/errors';
import type { AccountDelete, Attachment, LeaveReason, MemberView, MessageView, PasswordChange, PasswordReset, RoomId, RoomView, SetupCreate, SetupState, SignedIn, UserId } from '../protocol/generated/chat';
import { plain } from '../text/plain';
import { Brand } from './brand.svelte';
import { Chat } from './chat.svelte';
import { Endings } from './endings';
import { Formatter } from './formatter.svelte';
import { HeldKeys } from './held_keys';
import { Notifier } from './notifier';
import { isOutdated } from './outdated';
import { Preferences } from './preferences.svelte';
import { Router } from './router.svelte';

/** At most one of these lies over the page. */
export type Overlay =
  | { name: 'create_room' }
  | { name: 'directory' }
  | { name: 'new_direct' }
  | { name: 'switcher' }
  | { name: 'shortcuts' }
  | { name: 'account' }
  | { name: 'new_section'; room: RoomId }
  | { name: 'room_settings'; room: RoomId }
  | { name: 'invite'; room: RoomId }
  | { name: 'picture'; file: Attachment }
  | { name: 'confirm_delete'; message: MessageView }
  | { name: 'forward'; message: MessageView }
  | { name: 'confirm_member'; room: RoomId; member: MemberView; action: 'kick' | 'ban' };

/** What just happened, told in a corner. */
export interface Toast {
  text: string;
  /** The way back, or on. If it says that it failed, it is offered again. */
  action?: { label: string; run: () => unknown };
  /** Until it is dismissed: news that must not be missed. */
  stays?: boolean;
}

/** Whose profile is open, and next to what. */
export interface Card {
  user: UserId;
  anchor: Element;
}

export type Panel = 'none' | 'members' | 'search' | 'pins' | 'thread';

const KEY = Symbol('folkmoot');
const ENDPOINT = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/connection/websocket`;

export class Folkmoot {
  readonly keep: Keep;
  readonly preferences: Preferences;
  readonly brand: Brand;
  /** Back and forward lead to another page: what lay over this one belonged to it. */
  readonly router = new Router(() => ([this.overlay, this.card] = [undefined, undefined]));
  readonly notifier: Notifier;
  readonly heldKeys = new HeldKeys();
  readonly formatter = new Formatter((failed) => this.#onFormatter(failed));
  chat = $state.raw<Chat>();
  overlay = $state.raw<Overlay>();
  panel = $state<Panel>('none');
  card = $state.raw<Card>();
  /** A sentence for screen readers. */
  announcement = $state('');
  /** What went wrong with the last thing the person asked for. */
  notice = $state('');
  /** How many dialogs lie over the page. */
  dialogs = $state(0);
  toast = $state.raw<Toast>();
  /** The invitation on whose page somebody is signing in. */
  accepting: string | undefined;
  /** Of this tab. What is kept is that of the tab that signed in last, or none where the browser keeps nothing. */
  #session: KeptSession | undefined;
  #isLeaving = false;
  readonly #endings: Endings;
  /** Why the person has to sign in again, if the server said so. */
  signedOutByServer = $state(false);

  constructor(keep: Keep) {
    this.keep = keep;
    this.preferences = new Preferences(keep);
    this.brand = new Brand(keep);
    this.#endings = new Endings(keep);
    this.notifier = new Notifier((room, seq) => this.router.go({ name: 'room', room, seq }));
    window.addEventListener('storage', (event) => this.#onStorage(event));
    const session = keep.session();
    if (!session) return;
    this.#begin(session);
    // Whoever signs in learns it there.
    this.lookAtServer().catch(() => undefined);
  }

  /** By which the server knows whoever is signed in here. */
  get token(): string {
    return this.#session?.token ?? '';
  }

  /** What the server tells everybody about itself. */
  async lookAtServer(): Promise<SetupState> {
    const state = await setupState();
    this.brand.take(state.branding);
    return state;
  }

  get strings() {
    return this.preferences.strings;
  }

  async signIn(credentials: Credentials): Promise<void> {
    await this.#welcome(await signIn(credentials));
  }

  async signUp(credentials: Credentials): Promise<void> {
    await this.#welcome(await signUp(credentials));
  }

  /** Becomes the first administrator. */
  async setUp(first: SetupCreate): Promise<void> {
    await this.#welcome(await setUp(first));
    this.router.replace({ name: 'home' });
  }

  async resetPassword(reset: PasswordReset): Promise<void> {
    await this.#welcome(await resetPassword(reset));
    this.router.replace({ name: 'home' });
  }

  /** The session of this device goes on. */
  async changePassword(change: PasswordChange): Promise<void> {
    await changePassword(this.token, change);
  }

  /** Shows a picture of oneself, or none. */
  async setPicture(picture: Blob | undefined): Promise<void> {
    this.chat?.setProfile(await setPicture(this.token, picture));
  }

  /** The account of whoever is signed in, for good. */
  async deleteAccount(wish: AccountDelete): Promise<void> {
    const session = this.#session;
    if (!session) return;
    // The server ends the connection while it answers.
    this.#isLeaving = true;
    try {
      await deleteAccount(session.token, wish);
    } finally {
      this.#isLeaving = false;
    }
    this.keep.endSession(session);
    await this.#end(true);
    this.keep.forget(session.user.id);
    this.router.go({ name: 'home' });
    this.toast = { text: this.strings.account_deleted, stays: true };
  }

  async signOut(): Promise<void> {
    const session = this.#session;
    if (session) this.keep.endSession(session);
    const ended = this.#end(true);
    this.router.go({ name: 'home' });
    if (session) {
      this.keep.forgetQuotes(session.user.id);
      // Behind nothing: the page may be closed now.
      this.#endings.end(session.token);
    }
    await ended;
  }

  announce(text: string): void {
    this.announcement = text;
  }

  /** Runs what a click asked for; a failure is told in words. Returns whether it worked. */
  async attempt(action: Promise<unknown>): Promise<boolean> {
    try {
      await action;
      this.notice = '';
      return true;
    } catch (failure) {
      this.notice = this.explain(failure);
      return false;
    }
  }

  /** A part that cannot be fetched, because the network is gone, is told like everything that did not work, and closed. */
  part<T>(loading: Promise<T>, close: () => void): Promise<T> {
    return loading.catch(() => {
      close();
      this.heldKeys.forget();
      this.notice = this.strings.part_missing;
      void this.lookForUpdate();
      return new Promise<T>(() => undefined);
    });
  }

  /** Something did not come: if it is because the server has a newer client, only that one helps. */
  async lookForUpdate(): Promise<void> {
    if (!(await isOutdated())) return;
    const { outdated, reload } = this.strings;
    this.toast = { text: outdated, action: { label: reload, run: () => location.reload() }, stays: true };
  }

  explain(failure: unknown): string {
    if (failure instanceof NoReply) return this.strings.error_offline;
    if (failure instanceof Unreachable) return this.strings.server_unreachable;
    return this.strings.error_generic(failure instanceof Error ? failure.message : String(failure));
  }

  async #welcome({ token, user, device, begins_in }: SignedIn): Promise<void> {
    // Who follows a link may have been somebody else here until now, whose session nobody could end any more.
    const other = this.#session?.user.id === user.id ? undefined : this.#session;
    await this.#end(other !== undefined);
    const session: KeptSession = { token, user, device };
    this.keep.setSession(session);
    if (other) {
      this.keep.forgetQuotes(other.user.id);
      this.#endings.end(other.token);
    }
    // A newcomer lands where the server says, as if they had been there last.
    if (begins_in !== undefined) this.keep.opened(user.id, begins_in);
    this.signedOutByServer = false;
    this.#begin(session);
  }

  #begin(session: KeptSession): void {
    this.#session = session;
    const chat = new Chat(ENDPOINT, session, this.keep, {
      tokenRejected: () => void this.#onTokenRejected(session),
      arrived: (event, view) => {
        const text = this.strings.message_from(chat.people.nameOf(event.user, event.name), plain(event.body) || this.strings.file_count(event.attachments?.length ?? 0));
        const route = this.router.route;
        const isOpen = route.name === 'room' && route.room === view.id;
        this.notifier.arrived({ event, view, me: chat.me.id, title: titleOf(view), text, isOpen });
        if (isOpen) this.announce(text);
      },
      failed: (failure) => (this.notice = this.explain(failure)),
      roomGone: (view, reason) => this.#onRoomGone(view, reason),
      keepsNothing: () => (this.toast = { text: this.strings.keeps_nothing }),
      nameless: () => this.strings.deleted_account,
    });
    this.chat = chat;
    void chat.start();
  }

  #onFormatter(failed: boolean): void {
    const { unformatted } = this.strings;
    if (failed) {
      this.notice = unformatted;
      void this.lookForUpdate();
    } else if (this.notice === unformatted) this.notice = '';
  }

  #onRoomGone(view: RoomView, reason: LeaveReason | undefined): void {
    const route = this.router.route;
    if (route.name === 'room' && route.room === view.id) this.router.replace({ name: 'home' });
    // A dialog on it is gone as well: nobody waits for one, and keys are for the page.
    if (this.overlay && 'room' in this.overlay && this.overlay.room === view.id) this.overlay = undefined;
    // Leaving by oneself is no news, here or on another device.
    if (reason === 'left') return;
    const { room_was_deleted, removed_from } = this.strings;
    const news = reason === 'deleted' ? room_was_deleted(titleOf(view)) : removed_from(titleOf(view), reason);
    this.toast = { text: news, stays: true };
  }

  /** Another tab has signed out, or heard before this one that the session has ended. */
  #onStorage(event: StorageEvent): void {
    const session = this.#session;
    if (session && saysEnded(event, session)) void this.#onTokenRejected(session);
  }

  async #onTokenRejected(session: KeptSession): Promise<void> {
    if (this.#isLeaving || this.#session !== session) return;
    this.keep.endSession(session);
    this.signedOutByServer = true;
    // What was loaded stays archived: the same person signs in again in a moment.
    await this.#end(false);
  }

  async #end(forget: boolean): Promise<void> {
    const chat = this.chat;
    this.#session = undefined;
    this.chat = undefined;
    this.overlay = undefined;
    this.card = undefined;
    this.panel = 'none';
    await chat?.stop(forget);
  }
}

/** The room that the address names, when the person is in it. */
export function openRoom(folkmoot: Folkmoot): RoomView | undefined {
  const route = folkmoot.router.route;
  return route.name === 'room' ? folkmoot.chat?.rooms.get(route.room) : undefined;
}

export function provideFolkmoot(folkmoot: Folkmoot): void {
  setContext(KEY, folkmoot);
}

export function useFolkmoot(): Folkmoot {
  return getContext<Folkmoot>(KEY);
}

/** For components that only exist while someone is signed in. */
export function useChat(): Chat {
  const { chat } = useFolkmoot();
  if (!chat) throw new Error('shown only to someone signed in');
  return chat;
}
