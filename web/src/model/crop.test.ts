//! Promises of cropping a picture.

import { describe, expect, it } from 'vitest';

import { moved, squareOf, WHOLE, ZOOM_MAX } from './crop';

const WIDE = { width: 400, height: 200 };

describe('a crop', () => {
  it('begins_as_the_largest_square_in_the_middle', () => {
    expect(squareOf(WIDE, WHOLE)).toEqual({ left: 100, top: 0, side: 200 });
  });

  it('never_leaves_the_image_however_far_it_is_pulled', () => {
    const right = moved(WIDE, WHOLE, { dx: 10_000, dy: 10_000 });
    expect(squareOf(WIDE, right)).toEqual({ left: 200, top: 0, side: 200 });
    const near = moved(WIDE, right, { dx: 0, dy: 10_000 }, 2);
    expect(squareOf(WIDE, near)).toMatchObject({ top: 100, side: 100 });
    // Zoomed out again in the corner, it comes back as far as it must.
    expect(squareOf(WIDE, moved(WIDE, near, { dx: 0, dy: 0 }, 1))).toMatchObject({ top: 0, side: 200 });
  });

  it('zooms_no_further_than_a_picture_bears', () => {
    expect(moved(WIDE, WHOLE, { dx: 0, dy: 0 }, 99).zoom).toBe(ZOOM_MAX);
    expect(moved(WIDE, WHOLE, { dx: 0, dy: 0 }, 0).zoom).toBe(1);
  });
});
