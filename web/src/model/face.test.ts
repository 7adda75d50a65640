//! Promises of generated faces.

import { describe, expect, it } from 'vitest';

import { faceOf, initialsOf, type Face } from './face';

const ids = Array.from({ length: 4_000 }, (_, index) => (0x1000 + index).toString(16).padStart(13, '0'));
/** As much colour as grounds have (`Avatar.svelte`). */
const CHROMA = 0.12;
/** Two hundredths are seen side by side; at a glance it takes several times as much. */
const GLANCE = 0.09;

/** How far the grounds of two faces are apart, in OKLab. */
function distance(one: Face, other: Face): number {
  const turn = ((one.hue - other.hue) * Math.PI) / 180;
  return Math.hypot(one.light - other.light, 2 * CHROMA * Math.sin(turn / 2));
}

describe('a generated face', () => {
  it('is_the_same_each_time', () => {
    expect(faceOf('0000000000a1b')).toEqual(faceOf('0000000000a1b'));
  });

  it('differs_between_neighbours_more_often_than_chance_would_annoy', () => {
    const faces = ids.map((id) => JSON.stringify(faceOf(id)));
    const alike = faces.filter((face, index) => index > 0 && face === faces[index - 1]).length;
    expect(alike / ids.length).toBeLessThan(0.02);
    expect(new Set(faces).size).toBe(8 * 2 * 8 * 2);
  });

  it('has_a_ground_that_is_told_from_every_other_at_a_glance', () => {
    const grounds = [...new Map(ids.map(faceOf).map((face) => [`${face.hue} ${face.light}`, face])).values()];
    expect(grounds).toHaveLength(16);
    for (const one of grounds) {
      for (const other of grounds) if (one !== other) expect(distance(one, other)).toBeGreaterThan(GLANCE);
    }
  });

  it('has_a_shape_that_stands_out_from_its_ground', () => {
    for (const { light, shade } of ids.map(faceOf)) expect(Math.abs(light - shade)).toBeGreaterThan(GLANCE);
  });

  it('has_the_first_and_the_last_initial', () => {
    expect(initialsOf('Mira Voss')).toBe('MV');
    expect(initialsOf('ana')).toBe('A');
    expect(initialsOf('Jean Luc de la Tour')).toBe('JT');
    expect(initialsOf('東京 太郎')).toBe('東太');
  });
});
