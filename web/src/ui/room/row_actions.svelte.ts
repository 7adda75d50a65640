//! What one may do with a message of a room, and does: its toolbar, its menu and its keys all ask here. What one may not do
//! is undefined, so that nothing offers it.

import { mayPin, pinMessage, saveMessage } from '../../app/actions';
import type { Chat } from '../../app/chat.svelte';
import type { Conversation } from '../../app/conversation.svelte';
import type { Folkmoot } from '../../app/folkmoot.svelte';
import type { MessageView, RoomView } from '../../protocol/generated/chat';

/** The row as it is now: its message may still be on its way. */
interface Row {
  message: MessageView | undefined;
  view: RoomView;
  conversation: Conversation;
}

export class RowActions {
  /** An emoji is being chosen. */
  picking = $state(false);
  readonly #folkmoot: Folkmoot;
  readonly #chat: Chat;
  readonly #row: () => Row;

  constructor(folkmoot: Folkmoot, chat: Chat, row: () => Row) {
    this.#folkmoot = folkmoot;
    this.#chat = chat;
    this.#row = row;
  }

  get mine(): boolean {
    return this.#row().message?.user === this.#chat.me.id;
  }

  get saved(): boolean {
    // Not by the view, which changes with every message of the room.
    const { message, conversation } = this.#row();
    return message !== undefined && this.#chat.saved.has(conversation.room, message.seq);
  }

  get react(): (() => void) | undefined {
    return this.#writable(() => (this.picking = !this.picking));
  }

  get reply(): (() => void) | undefined {
    return this.#writable((message, { conversation }) => (conversation.replyTo = message));
  }

  /** Opens what it belongs to beside the room. */
  get thread(): (() => void) | undefined {
    return this.#standing(({ seq }, { conversation }) => {
      conversation.threadOf = conversation.timeline.rootOf(seq);
      this.#folkmoot.panel = 'thread';
    });
  }

  get edit(): (() => void) | undefined {
    return this.mine ? this.#writable((message, { conversation }) => conversation.beginEdit(message)) : undefined;
  }

  get pin(): (() => void) | undefined {
    if (!mayPin(this.#row().view)) return undefined;
    return this.#standing((message) => {
      void this.#folkmoot.attempt(pinMessage(this.#chat, message, message.pinned !== true));
    });
  }

  get save(): (() => void) | undefined {
    return this.#standing((message) => void this.#save(message));
  }

  get forward(): (() => void) | undefined {
    return this.#standing((message) => (this.#folkmoot.overlay = { name: 'forward', message }));
  }

  /** One's own can be taken back for a moment; to delete what somebody else wrote is asked for twice. */
  get remove(): (() => void) | undefined {
    const { mine } = this;
    if (!mine && this.#row().view.role === 'member') return undefined;
    return this.#standing((message) => {
      if (mine) {
        focusRow();
        this.#chat.deletions.soon(message);
      } else this.#folkmoot.overlay = { name: 'confirm_delete', message };
    });
  }

  /** What a key does while the row itself has the focus. */
  ofKey(key: string): (() => void) | undefined {
    switch (key) {
      case 'r':
        return this.reply;
      case 't':
        return this.thread;
      case 'e':
        return this.edit;
      case '+':
        return this.#writable(() => (this.picking = true));
      case 'p':
        return this.pin;
      case 's':
        return this.save;
      case 'Delete':
        return this.remove;
      case 'Escape':
        return () => document.getElementById('composer')?.focus();
      default:
        return undefined;
    }
  }

  /** Nothing is said in an archived room, and nothing changed but what goes. */
  #writable(act: (message: MessageView, row: Row) => void): (() => void) | undefined {
    return this.#row().view.archived === true ? undefined : this.#standing(act);
  }

  #standing(act: (message: MessageView, row: Row) => void): (() => void) | undefined {
    const row = this.#row();
    const { message } = row;
    return message && !message.deleted ? () => act(message, row) : undefined;
  }

  async #save(message: MessageView): Promise<void> {
    const on = !this.saved;
    const { strings } = this.#folkmoot;
    if (!(await this.#folkmoot.attempt(saveMessage(this.#chat, message, on)))) return;
    this.#folkmoot.announce(on ? strings.message_saved : strings.message_unsaved);
  }
}

/** Its buttons go with it: whoever got here by keyboard stays at the row. */
function focusRow(): void {
  const held = document.activeElement;
  if (held?.matches(':focus-visible')) held.closest<HTMLElement>('article')?.focus();
}
