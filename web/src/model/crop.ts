//! Which square of an image is shown: where its middle is and how far one has zoomed in. The square never leaves the image.

export interface Size {
  width: number;
  height: number;
}

/** The middle in parts of the image's width and height; a zoom of 1 shows the largest square there is. */
export interface Crop {
  x: number;
  y: number;
  zoom: number;
}

export interface Square {
  left: number;
  top: number;
  side: number;
}

export const ZOOM_MAX = 4;
export const WHOLE: Crop = { x: 0.5, y: 0.5, zoom: 1 };

/** The square in the image's own pixels. */
export function squareOf({ width, height }: Size, { x, y, zoom }: Crop): Square {
  const side = Math.min(width, height) / zoom;
  return { left: x * width - side / 2, top: y * height - side / 2, side };
}

/** The same crop with its middle moved by so many of the image's pixels, and another zoom, held within the image. */
export function moved(size: Size, crop: Crop, by: { dx: number; dy: number }, zoom = crop.zoom): Crop {
  const within = Math.min(ZOOM_MAX, Math.max(1, zoom));
  const half = Math.min(size.width, size.height) / within / 2;
  const held = (middle: number, length: number) => Math.min(1 - half / length, Math.max(half / length, middle));
  return { x: held(crop.x + by.dx / size.width, size.width), y: held(crop.y + by.dy / size.height, size.height), zoom: within };
}
