//! What keys and the clipboard do in the text field: send, start a line, format, change what was sent last, attach.

import type { Chat } from '../../app/chat.svelte';
import type { Conversation } from '../../app/conversation.svelte';
import type { Folkmoot } from '../../app/folkmoot.svelte';
import { continueList, format, inOpenBlock, pasteAddress, type Mark } from '../../model/formatting';
import type { Completion } from './completion.svelte';
import { enterSends, formatKey, isComposing } from './keys';
import type { Writing } from './writing.svelte';

/** So far back one's last message is looked for. */
const EDIT_LOOK_BACK = 50;
/** A text that is too long for a message goes as a file of this name. */
const LONG_TEXT_NAME = 'message.txt';

interface Parts {
  folkmoot: Folkmoot;
  chat: Chat;
  conversation: Conversation;
  writing: Writing;
  completion: Completion;
  /** Whether one may write now. */
  isOpen: () => boolean;
}

export class Composing {
  readonly enterSends = enterSends();
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  send(): void {
    const { writing, isOpen } = this.#parts;
    if (isOpen()) writing.send();
    writing.field?.focus();
  }

  attach(files: Iterable<File>): void {
    const { folkmoot, chat, conversation, writing } = this.#parts;
    void folkmoot.attempt(chat.attach(conversation, [...files]));
    writing.field?.focus();
  }

  mark(kind: Mark): void {
    const { writing } = this.#parts;
    void writing.put(format(writing.selected, kind));
  }

  onPaste(event: ClipboardEvent): void {
    const { writing } = this.#parts;
    const data = event.clipboardData;
    if (!data) return;
    const text = data.getData('text/plain');
    const { from, to } = writing.selected;
    if (text.length - (to - from) > writing.left) {
      // More than a message holds: nobody reads it in a line of text, and a field of a megabyte takes seconds a key.
      event.preventDefault();
      return this.attach([new File([text], LONG_TEXT_NAME, { type: 'text/plain' })]);
    }
    const linked = pasteAddress(writing.selected, text);
    if (linked) {
      event.preventDefault();
      return void writing.put(linked);
    }
    // Office programs put a picture of the text beside the text: the words are what was meant. File managers put the
    // name beside the file, and pages the address beside a picture; there it is the file.
    const isText = data.types.includes('text/plain') && data.types.includes('text/html');
    if (data.files.length === 0 || isText) return;
    event.preventDefault();
    this.attach(data.files);
  }

  onKeydown(event: KeyboardEvent): void {
    const { chat, conversation, writing, completion } = this.#parts;
    if (isComposing(event) || completion.key(event)) return;
    const kind = formatKey(event);
    if (kind) {
      event.preventDefault();
      event.stopPropagation();
      this.mark(kind);
    } else if (event.key === 'Enter') {
      this.#onEnter(event);
    } else if (event.key === 'ArrowUp' && writing.body === '') {
      this.#editLast(event);
    } else if (event.key === 'Escape' && conversation.replyTo) {
      conversation.replyTo = undefined;
    } else if (event.key === 'Escape') {
      conversation.newAfter = undefined;
      chat.reading.reached(conversation.room, conversation.timeline.lastSeq);
    }
  }

  #onEnter(event: KeyboardEvent): void {
    const { writing } = this.#parts;
    const { selected } = writing;
    const asked = event.ctrlKey || event.metaKey;
    if (asked || (this.enterSends && !event.shiftKey && !inOpenBlock(selected.text, selected.from))) {
      event.preventDefault();
      return this.send();
    }
    const next = continueList(selected);
    if (!next) return;
    event.preventDefault();
    void writing.put(next);
  }

  #editLast(event: KeyboardEvent): void {
    const { chat, conversation } = this.#parts;
    const newest = conversation.timeline.newest(EDIT_LOOK_BACK);
    const last = newest.findLast((message) => message.user === chat.me.id && !message.deleted);
    if (!last) return;
    event.preventDefault();
    conversation.beginEdit(last);
  }
}
