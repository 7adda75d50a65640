//! Whether a file may be attached, judged before any of it is sent. The server judges again, by the content.

import type { AttachmentLimits } from '../protocol/generated/chat';
import { FILE_NAME_CHARS_MAX } from '../protocol/generated/limits';

/** What is known of a file before it is sent. */
export interface Candidate {
  name: string;
  size: number;
  /** As the browser guesses from the name; empty where it does not know. */
  type: string;
}

export type Refusal =
  | { why: 'empty' }
  | { why: 'file_bytes'; limit: number }
  | { why: 'user_bytes'; limit: number; left: number }
  | { why: 'count'; limit: number }
  | { why: 'type'; type: string }
  /** On the disk, after it was chosen: what it was then cannot be read any more. */
  | { why: 'changed' };

/** Types that a name gives away and that no content can turn into something else. */
const PAGES = ['text/html', 'application/xhtml+xml', 'image/svg+xml'];

/** `count` and `bytes` are of the files that wait in the same message already. */
export function refusalOf(file: Candidate, limits: AttachmentLimits, count: number, bytes: number): Refusal | undefined {
  if (file.size === 0) return { why: 'empty' };
  if (file.size > limits.file_bytes_max) return { why: 'file_bytes', limit: limits.file_bytes_max };
  if (count >= limits.files_per_message_max) return { why: 'count', limit: limits.files_per_message_max };
  const left = Math.max(0, limits.user_bytes_max - limits.user_bytes - bytes);
  if (file.size > left) return { why: 'user_bytes', limit: limits.user_bytes_max, left };
  if (PAGES.includes(file.type) && !isAmong(file.type, limits.types)) return { why: 'type', type: file.type };
  return undefined;
}

/** What the server says when it refuses a file. */
export interface ServersRefusal {
  status: number;
  field: string | undefined;
  limit?: number | undefined;
}

/** Whether the file itself is refused, or its name: that stays, while room for it can be made. */
export function isOfFile({ status, field, limit }: ServersRefusal, userBytesMax: number | undefined): boolean {
  const isOfQuota = limit !== undefined && limit === userBytesMax;
  return (status === 400 || status === 413) && (field === 'file' || field === 'name') && !isOfQuota;
}

/** A `*` at the end of an allowed type stands for any rest. */
function isAmong(type: string, allowed: readonly string[]): boolean {
  return allowed.some((each) => (each.endsWith('*') ? type.startsWith(each.slice(0, -1)) : each === type));
}

/** More of a name's end is no ending. */
const ENDING_CHARS_MAX = 16;

/** The name under which a file goes: disks take longer ones than the server. What tells its kind stays. */
export function sentName(name: string): string {
  const chars = [...name];
  if (chars.length <= FILE_NAME_CHARS_MAX) return name;
  const dot = chars.lastIndexOf('.');
  const ending = chars.length - dot <= ENDING_CHARS_MAX && dot > 0 ? chars.slice(dot) : [];
  return [...chars.slice(0, FILE_NAME_CHARS_MAX - 1 - ending.length), '…', ...ending].join('');
}

/** The size at which a picture is shown: whole, not larger than the box, never larger than it is. */
export function fit(width: number, height: number, box: { width: number; height: number }): { width: number; height: number } {
  const scale = Math.min(1, box.width / width, box.height / height);
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}
