import { describe, expect, it } from 'vitest';

import type { MemberView, Role } from '../protocol/generated/chat';
import { groupsOf } from './member_groups';

function member(name: string, role: Role, online: boolean): MemberView {
  return { user: name, name, display_name: '', role, online, joined_at: 0 } as MemberView;
}

const named = (members: readonly MemberView[]) =>
  groupsOf(members, ({ online }) => online).map(({ name, members: group }) => [name, ...group.map((each) => each.name)]);

describe('the members of a room', () => {
  it('stand_by_role_and_then_by_presence', () => {
    const members = [
      member('zoe', 'member', true), member('ben', 'member', false), member('amy', 'member', true),
      member('owl', 'owner', false), member('max', 'moderator', false), member('mia', 'moderator', true),
    ];
    expect(named(members)).toEqual([
      ['owners', 'owl'], ['moderators', 'mia', 'max'], ['online', 'amy', 'zoe'], ['offline', 'ben'],
    ]);
  });

  it('have_no_group_that_nobody_is_in', () => {
    expect(named([member('amy', 'member', false)])).toEqual([['offline', 'amy']]);
    expect(named([])).toEqual([]);
  });
});
