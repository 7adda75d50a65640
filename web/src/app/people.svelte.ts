//! What people are called and show of themselves, as far as this client has heard: lists, profiles and live events tell it. A
//! message of the history carries the name of its day; whoever is not known otherwise is shown under that.

import type { MemberView, Status, UserId, UserView } from '../protocol/generated/chat';

interface Shown {
  picture: string | undefined;
  status: Status | undefined;
}

interface Source {
  ask: (user: UserId) => Promise<UserView>;
  /** What people without a name are called. */
  nameless: () => string;
  /** The time of the server. */
  now: () => number;
}

/** Faces that come into view together are asked for together, after the lists that tell of most of them anyway. */
const ASK_AFTER_MS = 600;
/** Timers of browsers go no further. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class People {
  #names = $state.raw<ReadonlyMap<UserId, string>>(new Map());
  #shown = $state.raw<ReadonlyMap<UserId, Shown>>(new Map());
  /** Moves when a status ends, so that whatever shows it looks again. */
  #now = $state(0);
  #ending: ReturnType<typeof setTimeout> | undefined;
  /** Told of since the connection began: live events keep these up to date. */
  readonly #told = new Set<UserId>();
  readonly #wanted = new Set<UserId>();
  #asking: ReturnType<typeof setTimeout> | undefined;
  /** Counts connections, so that whoever is on screen is wanted again after each. */
  #connection = $state(0);
  readonly #ask: Source['ask'];
  readonly #nameless: Source['nameless'];
  readonly #clock: Source['now'];

  constructor({ ask, nameless, now }: Source) {
    this.#ask = ask;
    this.#nameless = nameless;
    this.#clock = now;
    this.#now = now();
  }

  /** `fallback` is empty in what the server still tells of a deleted account. */
  nameOf(user: UserId, fallback: string): string {
    return (this.#names.get(user) ?? fallback) || this.#nameless();
  }

  /** The id of their picture; without one, a face is drawn from their own id. */
  pictureOf(user: UserId): string | undefined {
    return this.#shown.get(user)?.picture;
  }

  /** What they are up to, until it ends. */
  statusOf(user: UserId): Status | undefined {
    const status = this.#shown.get(user)?.status;
    return status?.until !== undefined && status.until <= this.#now ? undefined : status;
  }

  /** Somebody's face is on screen: whoever is not known yet is asked for. */
  want(user: UserId): void {
    void this.#connection;
    if (this.#told.has(user)) return;
    this.#wanted.add(user);
    this.#asking ??= setTimeout(() => this.#askWanted(), ASK_AFTER_MS);
  }

  /** A new connection: what people have changed meanwhile was told to others. */
  restart(): void {
    this.#told.clear();
    this.#connection += 1;
    this.#awaitEnd();
  }

  meet(people: readonly (UserView | MemberView)[]): void {
    for (const person of people) this.#told.add(idOf(person));
    for (const person of people) if ('deleted' in person && person.deleted === true) this.forget(person.id);
    this.#learn(people.map((person) => [idOf(person), person.display_name]));
    const news = people.filter((person) => !isSame(this.#shown.get(idOf(person)), person));
    if (news.length === 0) return;
    this.#shown = new Map([...this.#shown, ...news.map((person) => [idOf(person), { picture: person.picture, status: person.status }] as const)]);
    this.#awaitEnd();
  }

  /** The account was deleted: what messages on screen still call it is not shown any more. */
  forget(user: UserId): void {
    this.#names = new Map(this.#names).set(user, '');
    this.#shown = new Map(this.#shown).set(user, { picture: undefined, status: undefined });
  }

  /** A live event came under this name: it is the one of now. */
  heard(user: UserId, name: string): void {
    this.#learn([[user, name]]);
  }

  stop(): void {
    clearTimeout(this.#ending);
    clearTimeout(this.#asking);
  }

  #askWanted(): void {
    this.#asking = undefined;
    const unknown = [...this.#wanted].filter((user) => !this.#told.has(user));
    this.#wanted.clear();
    for (const user of unknown) {
      // Until the answer comes nobody asks again; without one, the next connection does.
      this.#told.add(user);
      this.#ask(user).then((view) => this.meet([view]), () => undefined);
    }
  }

  #learn(names: readonly (readonly [UserId, string])[]): void {
    const news = names.filter(([user, name]) => name !== '' && this.#names.get(user) !== name);
    if (news.length > 0) this.#names = new Map([...this.#names, ...news]);
  }

  #awaitEnd(): void {
    clearTimeout(this.#ending);
    this.#now = this.#clock();
    const first = Math.min(...[...this.#shown.values()].map(({ status }) => status?.until ?? Infinity).filter((until) => until > this.#now));
    if (!Number.isFinite(first)) return;
    this.#ending = setTimeout(() => this.#awaitEnd(), Math.min(first - this.#now + 1, TIMER_MS_MAX));
  }
}

function idOf(person: UserView | MemberView): UserId {
  return 'id' in person ? person.id : person.user;
}

function isSame(known: Shown | undefined, { picture, status }: UserView | MemberView): boolean {
  const before = known?.status;
  return known?.picture === picture && before?.emoji === status?.emoji && before?.text === status?.text && before?.until === status?.until;
}
