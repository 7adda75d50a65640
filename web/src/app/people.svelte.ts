//! What people are called, as far as this client has heard: a message names its author by account, lists of members and
//! profiles tell the name to show. Whoever is not known yet is shown under the name that came with the message.

import type { MemberView, UserId, UserView } from '../protocol/generated/chat';

export class People {
  #names = $state.raw<ReadonlyMap<UserId, string>>(new Map());

  nameOf(user: UserId, fallback: string): string {
    return this.#names.get(user) ?? fallback;
  }

  meet(people: readonly (UserView | MemberView)[]): void {
    const news = people.filter((person) => person.display_name !== '' && this.#names.get(idOf(person)) !== person.display_name);
    if (news.length === 0) return;
    const next = new Map(this.#names);
    for (const person of news) next.set(idOf(person), person.display_name);
    this.#names = next;
  }
}

function idOf(person: UserView | MemberView): UserId {
  return 'id' in person ? person.id : person.user;
}
