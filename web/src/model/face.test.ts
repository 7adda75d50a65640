//! Promises of generated faces.

import { describe, expect, it } from 'vitest';

import { faceOf, initialsOf } from './face';

const ids = Array.from({ length: 2_000 }, (_, index) => (0x1000 + index).toString(16).padStart(13, '0'));

describe('a generated face', () => {
  it('is_the_same_each_time', () => {
    expect(faceOf('0000000000a1b')).toEqual(faceOf('0000000000a1b'));
  });

  it('differs_between_neighbours_more_often_than_chance_would_annoy', () => {
    const faces = ids.map((id) => JSON.stringify(faceOf(id)));
    const alike = faces.filter((face, index) => index > 0 && face === faces[index - 1]).length;
    expect(alike / ids.length).toBeLessThan(0.03);
    expect(new Set(faces).size).toBe(14 * 6 * 3);
  });

  it('has_the_first_and_the_last_initial', () => {
    expect(initialsOf('Mira Voss')).toBe('MV');
    expect(initialsOf('ana')).toBe('A');
    expect(initialsOf('Jean Luc de la Tour')).toBe('JT');
    expect(initialsOf('東京 太郎')).toBe('東太');
  });
});
