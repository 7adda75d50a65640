//! The members of a room as a list of people shows them: those who look after it first, then who is there, then the others.

import type { MemberView } from '../protocol/generated/chat';

export type GroupName = 'owners' | 'moderators' | 'online' | 'offline';

export interface MemberGroup {
  name: GroupName;
  /** At least one; those who are there first, then by name. */
  members: MemberView[];
}

const ORDER: readonly GroupName[] = ['owners', 'moderators', 'online', 'offline'];

export function groupsOf(members: readonly MemberView[], isOnline: (member: MemberView) => boolean): MemberGroup[] {
  const called = (member: MemberView) => member.display_name || member.name;
  const sorted = [...members].sort(
    (a, b) => Number(isOnline(b)) - Number(isOnline(a)) || called(a).localeCompare(called(b)),
  );
  const groupOf = (member: MemberView): GroupName => {
    if (member.role !== 'member') return member.role === 'owner' ? 'owners' : 'moderators';
    return isOnline(member) ? 'online' : 'offline';
  };
  return ORDER.map((name) => ({ name, members: sorted.filter((member) => groupOf(member) === name) })).filter(
    ({ members: group }) => group.length > 0,
  );
}
