//! Promises of what is said about a file before it is sent.

import { describe, expect, it } from 'vitest';

import type { AttachmentLimits } from '../protocol/generated/chat';
import { fit, isOfFile, refusalOf, sentName } from './upload';

const LIMITS: AttachmentLimits = {
  file_bytes_max: 100, files_per_message_max: 2, user_bytes_max: 1000, user_bytes: 850, image_pixels_max: 1, types: ['image/png', 'audio/*'], unsent_s: 1,
};
const file = (size: number, type = '') => ({ name: 'a', size, type });

describe('a file', () => {
  it('is_refused_with_the_limit_it_breaks', () => {
    expect(refusalOf(file(0), LIMITS, 0, 0)).toEqual({ why: 'empty' });
    expect(refusalOf(file(101), LIMITS, 0, 0)).toEqual({ why: 'file_bytes', limit: 100 });
    expect(refusalOf(file(100), LIMITS, 2, 0)).toEqual({ why: 'count', limit: 2 });
    expect(refusalOf(file(100), LIMITS, 1, 60)).toEqual({ why: 'user_bytes', limit: 1000, left: 90 });
    expect(refusalOf(file(1, 'text/html'), LIMITS, 0, 0)).toEqual({ why: 'type', type: 'text/html' });
  });

  it('is_left_to_the_server_where_only_its_content_can_tell', () => {
    expect(refusalOf(file(100), LIMITS, 1, 50)).toBeUndefined();
    expect(refusalOf(file(1, 'text/markdown'), LIMITS, 0, 0)).toBeUndefined();
    expect(refusalOf(file(1, 'text/html'), { ...LIMITS, types: ['*'] }, 0, 0)).toBeUndefined();
  });
});

describe('the name of a file', () => {
  it('that_is_longer_than_the_server_takes_is_cut_before_its_ending', () => {
    expect(sentName('tides.csv')).toBe('tides.csv');
    expect(sentName('n'.repeat(128))).toBe('n'.repeat(128));
    expect(sentName(`${'n'.repeat(250)}.jpeg`)).toBe(`${'n'.repeat(122)}….jpeg`);
    expect(sentName('n'.repeat(255))).toBe(`${'n'.repeat(127)}…`);
    expect(sentName(`a.${'n'.repeat(253)}`)).toBe(`a.${'n'.repeat(125)}…`);
    expect([...sentName(`${'🌊'.repeat(200)}.txt`)]).toHaveLength(128);
  });
});

describe('a refusal of the server', () => {
  it('is_final_where_it_is_of_the_file_and_not_of_the_room_for_it', () => {
    const refused = (status: number, field: string | undefined, limit?: number) => isOfFile({ status, field, limit }, 1000);
    expect(refused(400, 'file')).toBe(true);
    expect(refused(413, 'file', 100)).toBe(true);
    expect(refused(413, 'name', 255)).toBe(true);
    expect(refused(413, 'file', 1000)).toBe(false);
    expect(refused(400, undefined, 100)).toBe(false);
    expect(refused(403, undefined)).toBe(false);
  });
});

describe('a picture', () => {
  it('is_shown_whole_within_its_box_and_never_enlarged', () => {
    const box = { width: 360, height: 270 };
    expect(fit(3600, 1350, box)).toEqual({ width: 360, height: 135 });
    expect(fit(100, 5400, box)).toEqual({ width: 5, height: 270 });
    expect(fit(40, 30, box)).toEqual({ width: 40, height: 30 });
    expect(fit(100_000, 1, box)).toEqual({ width: 360, height: 1 });
  });
});
