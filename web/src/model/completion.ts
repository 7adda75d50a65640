//! What is being completed at the cursor: `@na` or `:smi`, and the text once something is chosen.

export interface Trigger {
  kind: 'mention' | 'emoji';
  query: string;
  /** Where the trigger's first character stands. */
  start: number;
  end: number;
}

/** A colon is typed far more often than an emoji is wanted: it takes two letters to be asked. */
const EMOJI = /(?:^|\s):([a-z0-9_+-]{2,32})$/;
const MENTION = /(?:^|[\s(])@([a-z0-9_.-]{0,32})$/i;

export function triggerAt(text: string, cursor: number): Trigger | undefined {
  const before = text.slice(0, cursor);
  const mention = MENTION.exec(before)?.[1];
  if (mention !== undefined) {
    return { kind: 'mention', query: mention.toLowerCase(), start: cursor - mention.length - 1, end: cursor };
  }
  const emoji = EMOJI.exec(before)?.[1];
  return emoji === undefined ? undefined : { kind: 'emoji', query: emoji, start: cursor - emoji.length - 1, end: cursor };
}

/** The text with the chosen word in place, and where the cursor goes. */
export function complete(text: string, trigger: Trigger, chosen: string): { text: string; cursor: number } {
  const inserted = `${chosen} `;
  const rest = text.slice(trigger.end);
  return {
    text: text.slice(0, trigger.start) + inserted + (rest.startsWith(' ') ? rest.slice(1) : rest),
    cursor: trigger.start + inserted.length,
  };
}

export interface Named {
  name: string;
  display_name: string;
}

/** Those whose name begins with the query, then those whose display name has a word that does. */
export function findNamed<T extends Named>(people: readonly T[], query: string, limit: number): T[] {
  const words = (person: T) => person.display_name.toLowerCase().split(/\s+/);
  const byName = people.filter((person) => person.name.startsWith(query));
  const byWord = people.filter((person) => !person.name.startsWith(query) && words(person).some((word) => word.startsWith(query)));
  return [...byName, ...byWord].slice(0, limit);
}
