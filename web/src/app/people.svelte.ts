//! What people are called, as far as this client has heard: lists, profiles and live events tell the name to show. A message
//! of the history carries the name of its day; whoever is not known otherwise is shown under that.

import type { MemberView, UserId, UserView } from '../protocol/generated/chat';

export class People {
  #names = $state.raw<ReadonlyMap<UserId, string>>(new Map());

  nameOf(user: UserId, fallback: string): string {
    return this.#names.get(user) ?? fallback;
  }

  meet(people: readonly (UserView | MemberView)[]): void {
    this.#learn(people.map((person) => [idOf(person), person.display_name]));
  }

  /** A live event came under this name: it is the one of now. */
  heard(user: UserId, name: string): void {
    this.#learn([[user, name]]);
  }

  #learn(names: readonly (readonly [UserId, string])[]): void {
    const news = names.filter(([user, name]) => name !== '' && this.#names.get(user) !== name);
    if (news.length > 0) this.#names = new Map([...this.#names, ...news]);
  }
}

function idOf(person: UserView | MemberView): UserId {
  return 'id' in person ? person.id : person.user;
}
