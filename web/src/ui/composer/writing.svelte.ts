//! What is being written in one room: the text, its draft, telling others that one types, and sending. The field it is
//! written in belongs to the component; changes made here go through the field, so that undo takes them back.

import { tick } from 'svelte';

import type { Chat } from '../../app/chat.svelte';
import type { Conversation } from '../../app/conversation.svelte';
import type { Folkmoot } from '../../app/folkmoot.svelte';
import { KeptDraft } from '../../app/kept_draft.svelte';
import type { Selected } from '../../model/formatting';
import { draftOf } from '../../net/keep';
import { TYPING_REPEAT_MS } from '../../model/typing';
import { BODY_CHARS_MAX } from '../../protocol/generated/limits';

export class Writing {
  cursor = $state(0);
  field = $state.raw<HTMLTextAreaElement>();
  readonly #folkmoot: Folkmoot;
  readonly #chat: Chat;
  readonly #conversation: Conversation;
  readonly #draft: KeptDraft;
  #typingSince = -Infinity;

  constructor(folkmoot: Folkmoot, chat: Chat, conversation: Conversation) {
    this.#folkmoot = folkmoot;
    this.#chat = chat;
    this.#conversation = conversation;
    this.#draft = new KeptDraft(folkmoot.keep, draftOf(chat.me.id, conversation.room));
    conversation.replyTo ??= folkmoot.keep.answering(chat.me.id, conversation.room);
    conversation.resumeEdit(folkmoot.keep.edit(chat.me.id, conversation.room));
  }

  get body(): string {
    return this.#draft.body;
  }

  set body(body: string) {
    this.#draft.body = body;
  }

  get left(): number {
    return BODY_CHARS_MAX - this.body.length;
  }

  /** A file that cannot go would be missed silently: it has to be removed or mended first. */
  get sendable(): boolean {
    const { drafts, attaching } = this.#conversation;
    return attaching === 0 && (this.body.trim() !== '' || drafts.length > 0) && this.left >= 0 && !drafts.some((draft) => draft.state === 'failed');
  }

  get selected(): Selected {
    const { field, body } = this;
    return { text: body, from: field?.selectionStart ?? body.length, to: field?.selectionEnd ?? body.length };
  }

  /** To be called from an effect: what is answered is kept with the draft. */
  keepAnswer(): void {
    const { room, replyTo } = this.#conversation;
    this.#folkmoot.keep.setAnswering(this.#chat.me.id, room, replyTo);
  }

  /** To be called from an effect. */
  keepDraft(): () => void {
    return this.#draft.follow();
  }

  typed(): void {
    this.cursor = this.field?.selectionStart ?? 0;
    this.#draft.typed();
    this.tellTyping(this.body.trim() !== '');
  }

  tellTyping(on: boolean): void {
    // Not the time of day: a clock that is put back would silence it.
    const now = performance.now();
    if (on ? now - this.#typingSince < TYPING_REPEAT_MS : this.#typingSince === -Infinity) return;
    this.#typingSince = on ? now : -Infinity;
    this.#chat.link.call('typing.set', { room: this.#conversation.room, on }).catch(() => undefined);
  }

  send(): void {
    if (!this.sendable) return;
    const conversation = this.#conversation;
    const files = conversation.drafts.map(({ key, file, attachment }) => ({
      key, name: file.name, size: file.size, ...(attachment ? { id: attachment.id } : {}),
    }));
    this.#chat.sender.send(conversation.room, this.body.trim(), {
      ...(conversation.replyTo ? { reply_to: conversation.replyTo.seq } : {}),
      ...(files.length > 0 ? { files } : {}),
    });
    conversation.drafts = [];
    conversation.replyTo = undefined;
    // Sent is read: the line has done its work.
    conversation.newAfter = undefined;
    this.#typingSince = -Infinity;
    this.body = '';
    this.#draft.save();
  }

  /** Replaces the text between two places, and puts the selection where it belongs. */
  async put(next: Selected): Promise<void> {
    const { field } = this;
    if (!field) return;
    field.focus();
    const { from, to, by } = changeBetween(field.value, next.text);
    field.setSelectionRange(from, to);
    // The one way to change a field that undo knows of; where it is gone, the text still changes.
    const known = by === '' ? from === to || document.execCommand('delete') : document.execCommand('insertText', false, by);
    if (!known || field.value !== next.text) field.value = next.text;
    this.body = next.text;
    await tick();
    field.setSelectionRange(next.from, next.to);
    this.typed();
  }

  insert(text: string): Promise<void> {
    const { text: body, from, to } = this.selected;
    return this.put({ text: body.slice(0, from) + text + body.slice(to), from: from + text.length, to: from + text.length });
  }
}

/** The one stretch in which two texts differ. */
function changeBetween(before: string, after: string): { from: number; to: number; by: string } {
  let from = 0;
  while (from < before.length && from < after.length && before[from] === after[from]) from += 1;
  let end = 0;
  while (end < before.length - from && end < after.length - from && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return { from, to: before.length - end, by: after.slice(from, after.length - end) };
}
