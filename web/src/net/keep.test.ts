//! Promises of what is kept: tabs share one storage and do not take each other's things away.

import { describe, expect, it } from 'vitest';

import { draftOf, Keep, saysEnded, type KeptSession, type KeyValue } from './keep';

/** As a browser's, in memory. */
function storage(): KeyValue {
  const kept = new Map<string, string>();
  return {
    get length() {
      return kept.size;
    },
    key: (index) => [...kept.keys()][index] ?? null,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}

const session = (token: string): KeptSession => ({ token, user: { id: 'u', name: 'bo', display_name: 'Bo' }, device: 'd' });

describe('an unsent message', () => {
  const entry = { key: 'k', room: 'r', body: 'b', created_at: 1, state: 'queued' as const, attempts: 0 };

  it('is_kept_until_it_is_erased', () => {
    const keep = new Keep(storage());
    expect(keep.setUnsent('u', 'k', entry)).toBe(true);
    expect(keep.unsent('u')).toEqual([entry]);
    keep.setUnsent('u', 'k', undefined);
    expect(keep.unsent('u')).toEqual([]);
  });

  it('is_said_not_to_be_kept_where_storage_is_full_or_forbidden', () => {
    const full = { ...storage(), setItem: () => { throw new Error('quota'); } };
    expect([new Keep(full).setUnsent('u', 'k', entry), new Keep(undefined).setUnsent('u', 'k', entry)]).toEqual([false, false]);
  });
});

describe('a draft', () => {
  const full = { ...storage(), setItem: () => { throw new Error('quota'); } };

  it.each([['full', full], ['forbidden', undefined]])('lives_as_long_as_the_tab_where_storage_is_%s', (_why, kept) => {
    const keep = new Keep(kept);
    keep.setDraft('k', 'half a sentence');
    expect([keep.draft('k'), new Keep(kept).draft('k')]).toEqual(['half a sentence', '']);
    keep.setDraft('k', '');
    expect(keep.draft('k')).toBe('');
  });

  it('is_what_storage_took_last_once_it_takes_things_again', () => {
    const shared = storage();
    let isFull = true;
    const setItem = (key: string, value: string) => {
      if (isFull) throw new Error('quota');
      shared.setItem(key, value);
    };
    const keep = new Keep({ ...shared, setItem });
    keep.setDraft('k', 'refused');
    isFull = false;
    keep.setDraft('k', 'taken');
    new Keep(shared).setDraft('k', 'by another tab');
    expect(keep.draft('k')).toBe('by another tab');
  });

  it('of_a_thread_is_another_than_that_of_its_room', () => {
    expect(new Set([draftOf('u', 'r'), draftOf('u', 'r', 1), draftOf('u', 'r', 12)]).size).toBe(3);
  });
});

describe('somebody whose account is deleted', () => {
  it('leaves_nothing_behind_and_takes_nothing_of_others', () => {
    const shared = storage();
    const keep = new Keep(shared);
    for (const user of ['u', 'v']) {
      keep.setDraft(draftOf(user, 'r'), 'half a sentence');
      keep.setDraft(draftOf(user, 'r', 1), 'half an answer');
      keep.setEdit(user, 'r', { seq: 1, at: 1, body: 'half an edit' });
      keep.setUnsent(user, 'k', { key: 'k', room: 'r', body: 'b', created_at: 1, state: 'queued', attempts: 0 });
      keep.setAnswering(user, 'r', { seq: 1, user: 'v', name: 'V', body: 'said by another' });
      keep.opened(user, 'r');
    }
    const before = shared.length;
    keep.forget('u');
    expect(shared.length).toBe(before / 2);
    expect([keep.draft(draftOf('v', 'r')), keep.unsent('v').length, keep.unsent('u').length]).toEqual(['half a sentence', 1, 0]);
  });
});

describe('signing out', () => {
  it('leaves_the_numbers_of_what_drafts_answer_and_nothing_that_others_said', () => {
    const shared = storage();
    const keep = new Keep(shared);
    keep.setAnswering('u', 'r', { seq: 7, user: 'v', name: 'V', body: 'said by another' });
    keep.setAnswering('w', 'r', { seq: 8, user: 'v', name: 'V', body: 'said to another' });
    keep.forgetQuotes('u');
    expect(keep.answering('u', 'r')).toEqual({ seq: 7, user: 'v', name: '', body: '' });
    expect(keep.answering('w', 'r')?.body).toBe('said to another');
  });

  it.each([['kept', storage()], ['forbidden', undefined]])('is_remembered_until_the_server_has_heard_where_storage_is_%s', (_what, shared) => {
    const keep = new Keep(shared);
    keep.setEnding('first', true);
    keep.setEnding('second', true);
    keep.setEnding('first', false);
    expect([keep.endings(), keep.session()]).toEqual([['second'], undefined]);
  });
});

describe('a session', () => {
  it('is_forgotten_once_it_has_ended', () => {
    const keep = new Keep(storage());
    keep.setSession(session('first'));
    keep.endSession(session('first'));
    expect([keep.session(), keep.beenHere()]).toEqual([undefined, true]);
  });

  it('stays_when_a_tab_hears_late_that_the_one_before_it_has_ended', () => {
    const shared = storage();
    const [one, other] = [new Keep(shared), new Keep(shared)];
    one.setSession(session('first'));
    one.endSession(session('first'));
    one.setSession(session('second'));
    other.endSession(session('first'));
    expect(one.session()?.token).toBe('second');
  });

  it('is_said_to_have_ended_to_the_tabs_that_share_it_and_to_no_other', () => {
    const change = { key: 'folkmoot.session', oldValue: JSON.stringify(session('first')), newValue: null };
    expect(saysEnded(change, session('first'))).toBe(true);
    expect(saysEnded(change, session('second'))).toBe(false);
    expect(saysEnded({ ...change, newValue: JSON.stringify(session('second')) }, session('first'))).toBe(false);
    expect(saysEnded({ ...change, key: 'folkmoot.been-here' }, session('first'))).toBe(false);
  });
});
