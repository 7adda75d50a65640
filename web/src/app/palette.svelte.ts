//! What one can jump to: rooms, people, actions and messages, the ones used last first. Rooms and actions are at hand; people
//! and messages are asked for in a pause of typing, and what was found stays until there is something newer.

import { matching } from '../model/matching';
import { titleOf } from '../model/rooms';
import { typedQuery } from '../model/typed_query';
import type { IconName } from '../ui/parts/Icon.svelte';
import type { RoomView, UserView } from '../protocol/generated/chat';
import type { SearchHit } from '../protocol/generated/methods';
import { openDirect } from './actions';
import type { Chat } from './chat.svelte';
import type { Folkmoot } from './folkmoot.svelte';
import { keysOf, toggleSearch } from './shortcuts';

export type Found =
  | { kind: 'room'; key: string; title: string; view: RoomView }
  | { kind: 'person'; key: string; title: string; user: UserView }
  | { kind: 'action'; key: string; title: string; icon: IconName; keys: readonly string[]; run: () => void }
  | { kind: 'message'; key: string; title: string; hit: SearchHit };

const ROOMS_MAX = 7;
const PEOPLE_MAX = 5;
const ACTIONS_MAX = 4;
const MESSAGES_MAX = 5;
/** Fewer letters find half of everything. */
const MESSAGE_CHARS_MIN = 3;
const PAUSE_MS = 120;
/** How often, and how long after, what was not found is looked for again. */
const AGAIN_MAX = 3;
const AGAIN_MS = 1_500;

/** What was typed: late once something else is. */
interface Question {
  isLate: boolean;
  timer: number;
}

export class Palette {
  query = $state('');
  selected = $state(0);
  #people = $state.raw<readonly UserView[]>([]);
  #hits = $state.raw<readonly SearchHit[]>([]);
  readonly #folkmoot: Folkmoot;
  readonly #chat: Chat;

  readonly found = $derived.by((): Found[] => [...this.#rooms(), ...this.#persons(), ...this.#actions(), ...this.#messages()]);

  constructor(folkmoot: Folkmoot, chat: Chat) {
    this.#folkmoot = folkmoot;
    this.#chat = chat;
  }

  /** To be called from an effect: asks the server. Returns how to stop. */
  ask(): (() => void) | undefined {
    const query = this.query.trim();
    if (query === '') {
      this.#people = [];
      this.#hits = [];
      return undefined;
    }
    const question = { isLate: false, timer: 0 };
    question.timer = window.setTimeout(() => {
      void this.#findPeople(query, question);
      void this.#findMessages(query, question, AGAIN_MAX);
    }, PAUSE_MS);
    return () => {
      question.isLate = true;
      clearTimeout(question.timer);
    };
  }

  async #findPeople(query: string, question: Question): Promise<void> {
    const { link, me } = this.#chat;
    const request = { prefix: query.replace(/^@/, ''), limit: PEOPLE_MAX + 1 };
    const found = await link.call('users.find', request).catch(() => undefined);
    if (found && !question.isLate) this.#people = found.users.filter(({ id }) => id !== me.id).slice(0, PEOPLE_MAX);
  }

  /** What was said a moment ago is found once the index has it: while that is behind, it is asked again. */
  async #findMessages(query: string, question: Question, again: number): Promise<void> {
    const words = query.length < MESSAGE_CHARS_MIN ? undefined : typedQuery(query);
    const request = { query: words ?? '', limit: MESSAGES_MAX };
    const found = words === undefined ? undefined : await this.#chat.link.call('search', request).catch(() => undefined);
    // The answer to something else that was typed since says more.
    if (question.isLate) return;
    this.#hits = found?.hits ?? [];
    if (this.#hits.length > 0 || found?.behind === undefined || again === 0) return;
    question.timer = window.setTimeout(() => void this.#findMessages(query, question, again - 1), AGAIN_MS);
  }

  walk(step: 1 | -1): void {
    this.selected = (this.selected + step + this.found.length) % Math.max(1, this.found.length);
  }

  async go(found: Found | undefined): Promise<void> {
    if (!found) return;
    const { router } = this.#folkmoot;
    this.#folkmoot.overlay = undefined;
    switch (found.kind) {
      case 'room':
        return router.go({ name: 'room', room: found.view.id });
      case 'message':
        return router.go({ name: 'room', room: found.hit.room, seq: found.hit.seq });
      case 'action':
        return found.run();
      case 'person': {
        const direct = await openDirect(this.#chat, found.user.id);
        return router.go({ name: 'room', room: direct.id });
      }
    }
  }

  #rooms(): Found[] {
    const recent = this.#folkmoot.keep.recentRooms(this.#chat.me.id);
    const route = this.#folkmoot.router.route;
    // Where one is already is the last place that one wants to go.
    const place = (view: RoomView) => (route.name === 'room' && route.room === view.id ? 999 : recent.includes(view.id) ? recent.indexOf(view.id) : 500);
    const urgency = (view: RoomView) => (view.notify === 'none' || this.query !== '' ? 0 : Math.min(view.mentions, 1));
    const views = [...this.#chat.rooms.values()].sort((a, b) => urgency(b) - urgency(a) || place(a) - place(b) || titleOf(a).localeCompare(titleOf(b)));
    const named = (view: RoomView) => (view.peer ? `${titleOf(view)} ${view.peer.name}` : titleOf(view));
    return matching(views, this.query.replace(/^[#@]/, ''), named).slice(0, ROOMS_MAX).map((view) => ({ kind: 'room', key: view.id, title: titleOf(view), view }));
  }

  #persons(): Found[] {
    const written = new Set([...this.#chat.rooms.values()].flatMap((view) => view.peer?.id ?? []));
    return this.#people
      .filter((user) => !written.has(user.id))
      .map((user) => ({ kind: 'person', key: user.id, title: user.display_name || user.name, user }));
  }

  #actions(): Found[] {
    const folkmoot = this.#folkmoot;
    const text = folkmoot.strings;
    const { preferences } = folkmoot;
    const route = folkmoot.router.route;
    const room = route.name === 'room' ? route.room : undefined;
    const action = (title: string, icon: IconName, run: () => void, keys: readonly string[] = []): Found =>
      ({ kind: 'action', key: title, title, icon, keys, run });
    const all = [
      action(text.create_room, 'plus', () => (folkmoot.overlay = { name: 'create_room' })),
      action(text.directory, 'compass', () => (folkmoot.overlay = { name: 'directory' })),
      action(text.new_direct, 'edit', () => (folkmoot.overlay = { name: 'new_direct' })),
      action(text.inbox, 'inbox', () => folkmoot.router.go({ name: 'inbox' }), keysOf('shortcut_inbox')),
      action(text.saved_messages, 'bookmark', () => folkmoot.router.go({ name: 'saved' })),
      action(text.account, 'gear', () => (folkmoot.overlay = { name: 'account' })),
      action(text.shortcuts, 'keyboard', () => (folkmoot.overlay = { name: 'shortcuts' }), keysOf('shortcut_sheet')),
      action(`${text.theme}: ${text.theme_dark}`, 'gear', () => preferences.setTheme('dark')),
      action(`${text.theme}: ${text.theme_light}`, 'gear', () => preferences.setTheme('light')),
      action(`${text.density}: ${text.density_compact}`, 'gear', () => preferences.setDensity('compact')),
      action(`${text.density}: ${text.density_comfortable}`, 'gear', () => preferences.setDensity('comfortable')),
      ...(room === undefined
        ? []
        : [
            action(text.invite_people, 'link', () => (folkmoot.overlay = { name: 'invite', room })),
            action(text.room_settings, 'gear', () => (folkmoot.overlay = { name: 'room_settings', room })),
            action(text.search, 'search', () => toggleSearch(folkmoot), keysOf('shortcut_search')),
            action(text.members, 'people', () => (folkmoot.panel = 'members'), keysOf('shortcut_members')),
            action(text.pinned_messages, 'pin', () => (folkmoot.panel = 'pins'), keysOf('shortcut_pins')),
          ]),
      ...(this.#chat.administrator ? [action(text.administration, 'shield', () => folkmoot.router.go({ name: 'admin', view: 'overview' }))] : []),
      action(text.sign_out, 'logout', () => void folkmoot.signOut()),
    ];
    const wanted = this.query.trim() === '' ? all : matching(all, this.query, ({ title }) => title);
    return wanted.slice(0, ACTIONS_MAX);
  }

  #messages(): Found[] {
    return this.#hits.map((hit) => ({ kind: 'message', key: `${hit.room}/${hit.seq}`, title: hit.excerpt, hit }));
  }
}
