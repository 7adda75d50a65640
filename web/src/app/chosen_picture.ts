//! A file that somebody chose to show beside their name: opened here, or refused with the rule that it breaks. It is a
//! stranger's file until the server has made its own picture of it, so its size is looked at before its pixels are.

import { fileSize } from '../i18n/size';
import type { Language, Strings } from '../i18n';

/** What the server decodes. No SVG: it can hold scripts. */
export const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
/** More than cameras write. Only the part that is shown is sent. */
export const CHOSEN_BYTES_MAX = 64 * 1024 * 1024;
/** Decoded it takes four bytes for each: a telephone of the smaller kind still has them. */
export const CHOSEN_PIXELS_MAX = 64_000_000;

export class PictureRefused extends Error {
  override name = 'PictureRefused';
}

/** The decoded picture; rejects with a [`PictureRefused`] whose message is meant for the person. */
export async function openPicture(file: Blob, text: Strings, language: Language): Promise<ImageBitmap> {
  if (!PICTURE_TYPES.some((type) => type === file.type)) throw new PictureRefused(text.picture_kinds);
  if (file.size > CHOSEN_BYTES_MAX) throw new PictureRefused(text.picture_too_large(fileSize(language, CHOSEN_BYTES_MAX)));
  const { width, height } = await announcedSize(file, text);
  if (width * height > CHOSEN_PIXELS_MAX) {
    throw new PictureRefused(text.picture_too_many_pixels(new Intl.NumberFormat(language).format(CHOSEN_PIXELS_MAX)));
  }
  return createImageBitmap(file).catch(() => Promise.reject(new PictureRefused(text.picture_unreadable)));
}

/** Browsers read a header when an image is loaded, and decode its pixels only when it is drawn. */
async function announcedSize(file: Blob, text: Strings): Promise<{ width: number; height: number }> {
  const address = URL.createObjectURL(file);
  try {
    return await new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => resolve({ width: image.naturalWidth, height: image.naturalHeight });
      image.onerror = () => reject(new PictureRefused(text.picture_unreadable));
      image.src = address;
    });
  } finally {
    URL.revokeObjectURL(address);
  }
}
