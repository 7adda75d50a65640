//! What a half-typed name or emoji offers, and the keys that walk through it.

import type { Chat } from '../../app/chat.svelte';
import type { Conversation } from '../../app/conversation.svelte';
import type { Folkmoot } from '../../app/folkmoot.svelte';
import { complete, findNamed, triggerAt } from '../../model/completion';
import type { MemberView, RoomView } from '../../protocol/generated/chat';
import { findEmoji, loadEmoji, withTone, type EmojiGroups } from '../../text/emoji';
import type { Writing } from './writing.svelte';

const CHOICES_MAX = 8;
/** A pause in typing after which members are asked for that the page does not know. */
const ASK_MS = 120;

export interface Choice {
  insert: string;
  label: string;
  hint: string;
  person?: MemberView;
}

export class Completion {
  selected = $state(0);
  #dismissed = $state<number>();
  #emoji = $state.raw<EmojiGroups>([]);
  #asked = $state.raw<readonly MemberView[]>([]);
  readonly #folkmoot: Folkmoot;
  readonly #chat: Chat;
  readonly #conversation: Conversation;
  readonly #writing: Writing;
  readonly #view: () => RoomView;

  readonly trigger = $derived.by(() => {
    const found = triggerAt(this.#writing.body, this.#writing.cursor);
    return found && found.start !== this.#dismissed ? found : undefined;
  });

  readonly choices = $derived.by((): Choice[] => {
    if (!this.trigger) return [];
    return this.trigger.kind === 'emoji' ? this.#emojiChoices(this.trigger.query) : this.#people(this.trigger.query);
  });

  constructor(folkmoot: Folkmoot, chat: Chat, conversation: Conversation, writing: Writing, view: () => RoomView) {
    this.#folkmoot = folkmoot;
    this.#chat = chat;
    this.#conversation = conversation;
    this.#writing = writing;
    this.#view = view;
  }

  /** To be called from an effect: fetches what the trigger needs. Returns how to stop. */
  prepare(): (() => void) | undefined {
    const { trigger } = this;
    this.selected = 0;
    if (trigger?.kind === 'emoji') {
      void loadEmoji(this.#folkmoot.preferences.language).then((groups) => (this.#emoji = groups), () => undefined);
      return undefined;
    }
    // A large room is not loaded as a whole: the server finds the rest.
    if (!trigger || trigger.query === '' || this.#conversation.membersAfter === undefined) return undefined;
    const timer = setTimeout(() => {
      const request = { room: this.#conversation.room, prefix: trigger.query, limit: CHOICES_MAX };
      this.#chat.link.call('room.members', request).then(({ members }) => (this.#asked = members), () => undefined);
    }, ASK_MS);
    return () => clearTimeout(timer);
  }

  dismiss(): void {
    this.#dismissed = this.trigger?.start;
  }

  typed(): void {
    this.#dismissed = undefined;
  }

  async choose(choice: Choice): Promise<void> {
    const { trigger } = this;
    if (!trigger) return;
    const { text, cursor } = complete(this.#writing.body, trigger, choice.insert);
    await this.#writing.put({ text, from: cursor, to: cursor });
  }

  /** Returns whether the key was meant for the list. */
  key(event: KeyboardEvent): boolean {
    const choice = this.choices[this.selected];
    if (!choice) return false;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this.selected = (this.selected + (event.key === 'ArrowDown' ? 1 : this.choices.length - 1)) % this.choices.length;
    } else if ((event.key === 'Enter' || event.key === 'Tab') && !event.shiftKey) {
      void this.choose(choice);
    } else if (event.key === 'Escape') {
      this.dismiss();
    } else {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  #emojiChoices(query: string): Choice[] {
    const { tone } = this.#folkmoot.preferences;
    return findEmoji(this.#emoji, query, CHOICES_MAX).map((emoji) => {
      const character = withTone(emoji, tone);
      return { insert: character, label: `${character} :${emoji.name}:`, hint: '' };
    });
  }

  #people(query: string): Choice[] {
    const known = this.#conversation.members;
    const all = [...known, ...this.#asked.filter(({ user }) => !known.some((member) => member.user === user))];
    const named = findNamed(all.filter((member) => member.user !== this.#chat.me.id), query, CHOICES_MAX);
    const choices: Choice[] = named.map((member) => ({
      insert: `@${member.name}`, label: member.display_name || member.name, hint: `@${member.name}`, person: member,
    }));
    const view = this.#view();
    const everyone = view.role !== 'member' && view.kind === 'room' && 'everyone'.startsWith(query);
    const hint = this.#folkmoot.strings.everyone_hint;
    return everyone ? [...choices, { insert: '@everyone', label: '@everyone', hint }] : choices;
  }
}
