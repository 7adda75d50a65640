import { describe, expect, it } from 'vitest';

import { WATCHED_USERS_MAX } from '../protocol/generated/limits';
import { Watched } from './watched';

const ROOM = 'tea';
const panel = {};
const card = {};

function told(watched: Watched, online: string[], away: string[], users = online.length): void {
  watched.told({ type: 'presence', room: ROOM, online, away, users });
}

describe('watched', () => {
  it('asks once for all who are shown, as soon as the room is subscribed to', () => {
    const watched = new Watched();
    watched.show(ROOM, panel, ['bo', 'cara']);
    expect(watched.questions()).toEqual([]);
    watched.subscribed(ROOM);
    watched.show(ROOM, card, ['ada', 'bo']);
    expect(watched.questions()).toEqual([{ room: ROOM, users: ['ada', 'bo', 'cara'] }]);
    expect(watched.questions()).toEqual([]);
  });

  it('asks again when the screen changes, and after each new connection', () => {
    const watched = new Watched();
    watched.subscribed(ROOM);
    watched.show(ROOM, panel, ['bo']);
    watched.questions();
    watched.show(ROOM, panel, ['cara']);
    expect(watched.questions()).toEqual([{ room: ROOM, users: ['cara'] }]);
    watched.restart();
    expect(watched.questions()).toEqual([]);
    watched.subscribed(ROOM);
    expect(watched.questions()).toEqual([{ room: ROOM, users: ['cara'] }]);
    watched.show(ROOM, panel, []);
    expect(watched.questions()).toEqual([{ room: ROOM, users: [] }]);
  });

  it('knows who is there as it was told last', () => {
    const watched = new Watched();
    watched.subscribed(ROOM);
    watched.show(ROOM, panel, ['bo', 'cara']);
    watched.questions();
    told(watched, ['bo'], ['cara'], 7);
    expect([...watched.online()]).toEqual(['bo']);
    expect(watched.counts().get(ROOM)).toBe(7);
    told(watched, ['cara'], ['bo']);
    told(watched, [], [], 8);
    expect([...watched.online()]).toEqual(['cara']);
    expect(watched.counts().get(ROOM)).toBe(8);
  });

  it('shows what the last connection told until the next one tells', () => {
    const watched = new Watched();
    watched.subscribed(ROOM);
    watched.show(ROOM, panel, ['bo']);
    watched.questions();
    told(watched, ['bo'], []);
    watched.restart();
    expect([...watched.online()]).toEqual(['bo']);
    watched.subscribed(ROOM);
    watched.questions();
    told(watched, [], ['bo']);
    expect([...watched.online()]).toEqual([]);
  });

  it('asks nothing of a room that is not subscribed to any more, and knows nobody there', () => {
    const watched = new Watched();
    watched.subscribed(ROOM);
    watched.show(ROOM, panel, ['bo']);
    watched.questions();
    told(watched, ['bo'], []);
    watched.unsubscribed(ROOM);
    watched.show(ROOM, panel, []);
    expect(watched.questions()).toEqual([]);
    expect([...watched.online()]).toEqual([]);
    expect(watched.counts().size).toBe(0);
  });

  it('knows nothing of anybody who is not shown', () => {
    const watched = new Watched();
    watched.subscribed(ROOM);
    watched.show(ROOM, panel, ['bo', 'cara']);
    watched.questions();
    told(watched, ['bo', 'cara'], []);
    watched.show(ROOM, panel, ['cara']);
    watched.questions();
    // On its way when the screen changed.
    told(watched, ['bo'], []);
    expect([...watched.online()]).toEqual(['cara']);
    watched.show(ROOM, panel, []);
    watched.questions();
    expect([...watched.online()]).toEqual([]);
    expect(watched.counts().size).toBe(0);
  });

  it('asks for no more than the server takes, and for the one on the card before a long list', () => {
    const watched = new Watched();
    watched.subscribed(ROOM);
    watched.show(ROOM, panel, Array.from({ length: WATCHED_USERS_MAX + 5 }, (_, n) => `m${n}`));
    watched.show(ROOM, card, ['zoe']);
    const [question] = watched.questions();
    expect(question?.users.length).toBe(WATCHED_USERS_MAX);
    expect(question?.users).toContain('zoe');
  });
});
